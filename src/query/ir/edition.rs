//! The three editions of the language.

use std::str::FromStr;

use crate::support::macros::names;

names! {
    /// The edition that a selector is written in (LANGUAGE, first table). Later editions have more
    /// constructs.
    ///
    /// ```
    /// use pactql::Engine;
    /// let engine = Engine::builder().edition("v0.1".parse()?).build();
    /// assert_eq!(engine.format(".cb")?, "@t0 .cb");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    #[non_exhaustive]
    pub enum Edition: as_str {
        /// `v0.1`: chains. An omitted time is `@t0`, `#x` is an id, `.cb:sub` a nodeType.
        V01 = "v0.1",
        /// `depth`: universal depth, groups, positions, facets. An omitted time is the working
        /// state, `#x` is an id, `.cb:sub` a nodeType and a kind.
        Depth = "depth",
        /// `canonical`: everything. As `depth`, but `#x` is a key.
        #[default]
        Canonical = "canonical",
    }
}

/// The name is not that of an edition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown edition `{0}`, known are `v0.1`, `depth` and `canonical`")]
pub struct UnknownEdition(Box<str>);

impl FromStr for Edition {
    type Err = UnknownEdition;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::parse(name).ok_or_else(|| UnknownEdition(name.into()))
    }
}
