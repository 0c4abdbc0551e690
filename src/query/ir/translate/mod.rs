//! Translation: writes a normalized selector in the spelling of one edition.
//!
//! A [`Query`] does not depend on an edition, so translating is printing. Where an edition lacks a
//! construct, `express` first finds an equivalent query that avoids it (a filter moves into the
//! step it filters, a list becomes a union, `depth(1)` a turn under `^seq`). A construct without an
//! equivalent is an error. The printed text is read back and returned only if it is the same query.
//!
//! The module must not know any data: equivalent means equal results over every session.

mod attrs;
mod construct;
mod depths;
mod express;
mod place;
mod spell;
mod untranslatable;

use self::construct::Construct;
use self::express::express;
pub use self::untranslatable::Untranslatable;
use super::edition::Edition;
use super::lower::read;
use super::query::Query;
use crate::query::syntax::MAX_BYTES;

impl Query {
    /// The query as a text of `edition` with the same meaning over every session; in the canonical
    /// edition the canonical text, which every query has. The text was read back and compared.
    ///
    /// Linear in the query, times the groups of the unions that replace lists, mixed depths and
    /// types with a kind, which are within the limits of LANGUAGE §10.
    ///
    /// # Errors
    /// The first construct found that the edition cannot express.
    pub fn text_in(&self, edition: Edition) -> Result<String, Untranslatable> {
        let fail = |construct| Untranslatable { edition, construct };
        if edition == Edition::Canonical {
            return Ok(self.canonical_text());
        }
        let expressed = express(self, edition).map_err(fail)?;
        let text = spell::query(&expressed, edition);
        if text.len() > MAX_BYTES {
            return Err(fail(Construct::Size));
        }
        match read(&text, edition) {
            Some(read) if read == expressed => Ok(text),
            _ => Err(fail(Construct::Unread)),
        }
    }
}
