//! The three editions of the language, as lowering needs them.

use std::fmt;
use std::str::FromStr;

/// Which edition a selector is written in (LANGUAGE, first table). Later editions hold more
/// constructs; nothing behind lowering knows which one was chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Edition {
    /// `v0.1`: chains. An omitted time is `@t0`, `#x` is an id, `.cb:sub` a nodeType.
    V01,
    /// `depth`: universal depth, groups, positions, facets. An omitted time is the working
    /// state, `#x` is an id, `.cb:sub` a nodeType and a kind.
    Depth,
    /// `canonical`: everything. As `depth`, but `#x` is a key.
    #[default]
    Canonical,
}

impl Edition {
    /// All editions, oldest first.
    pub const ALL: [Self; 3] = [Self::V01, Self::Depth, Self::Canonical];

    /// The name users write.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V01 => "v0.1",
            Self::Depth => "depth",
            Self::Canonical => "canonical",
        }
    }
}

impl fmt::Display for Edition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of no edition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownEdition(Box<str>);

impl fmt::Display for UnknownEdition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "unknown edition `{}`, known are `v0.1`, `depth` and `canonical`",
            self.0
        )
    }
}

impl std::error::Error for UnknownEdition {}

impl FromStr for Edition {
    type Err = UnknownEdition;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|edition| edition.as_str() == name)
            .ok_or_else(|| UnknownEdition(name.into()))
    }
}
