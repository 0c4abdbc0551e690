//! The text index: which sessions may have a text, without reading them.

pub(crate) mod build;
pub(crate) mod grams;
pub(crate) mod tables;

use crate::store::Store;
use crate::support::diag::Error;

/// The text index of a store. See [`Store::index_text`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextIndex {
    /// Number of different texts in it.
    pub texts: u64,
    /// Number of versions of turns and other units that were written since it was brought up to date. A
    /// search reads the sessions that have one.
    pub behind: u64,
}

impl Store {
    /// Makes an index of the texts that models were sent and of contents, or brings it up to date, so that a search
    /// ([`inspect::Search::sessions`](crate::inspect::Search::sessions)) and a selector with a pattern for the content
    /// ([`Store::select`]) open only sessions that may have a match. Returns how many versions of turns and other units were added.
    ///
    /// A commit does not write it: what is written later is searched without it until this is called again.
    /// Whatever is removed from the store is removed from the index with it. It is made in several
    /// transactions, between which others write; if one fails, the next call goes on there. Linear in the
    /// texts that are new.
    ///
    /// # Errors
    /// Those of the database.
    ///
    /// ```
    /// use pactql::inspect::Search;
    /// use pactql::{Context, Message, Store};
    /// # let path = std::env::temp_dir().join(format!("pactql-texts-{}.db", std::process::id()));
    /// let store = Store::open(&path)?;
    /// let mut context = store.write("support-42")?;
    /// context.append(Message::user("Where is my refund?"))?;
    /// context.commit()?;
    /// drop(context);
    /// store.index_text()?;
    /// let sessions = Search::new("refund|money back", true)?.sessions(&store, "")?;
    /// assert_eq!(sessions, Some(vec!["support-42".to_owned()]));
    /// # drop(store);
    /// # std::fs::remove_file(path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn index_text(&self) -> Result<u64, Error> {
        let mut added = 0;
        loop {
            let home = &self.core.home;
            let more = self
                .core
                .remove(|database| build::index_texts(database, home))?;
            added += more;
            if more == 0 {
                return Ok(added);
            }
        }
    }

    /// Removes the text index. Returns whether there was one.
    ///
    /// # Errors
    /// Those of the database.
    pub fn drop_text_index(&self) -> Result<bool, Error> {
        let dropped = self.core.remove(tables::drop_text_index)?;
        if dropped {
            self.core.tidy();
        }
        Ok(dropped)
    }

    /// What the text index has; `None` if there is none. Linear in the number of its texts, and quick.
    ///
    /// # Errors
    /// Those of the database.
    pub fn text_index(&self) -> Result<Option<TextIndex>, Error> {
        let found = self.core.read(tables::size)?;
        Ok(found.map(|(texts, behind)| TextIndex { texts, behind }))
    }
}
