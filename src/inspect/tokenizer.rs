//! Tokenizers by name, and the one that fits a model (INSPECT §3).

use super::call::Call;
#[cfg(feature = "tokens")]
use super::vocabulary;
use crate::index::Snapshot;
use serde::Serialize;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// How tokens are counted. Every figure goes with the name of its tokenizer.
///
/// ```
/// use pactql::inspect::Tokenizer;
/// assert_eq!(Tokenizer::Bytes4.count("a text of 20 bytes.."), 5);
/// assert_eq!("bytes/4".parse(), Ok(Tokenizer::Bytes4));
/// assert!(Tokenizer::for_model("claude-sonnet-4").is_estimate());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Tokenizer {
    /// That of GPT-4o and the models after it.
    #[cfg(feature = "tokens")]
    O200k,
    /// That of GPT-4 and GPT-3.5.
    #[cfg(feature = "tokens")]
    Cl100k,
    /// An estimate for any model: bytes in UTF-8 divided by four, rounded up.
    #[default]
    #[serde(rename = "bytes/4")]
    Bytes4,
}

impl Tokenizer {
    /// All that this build has.
    pub const ALL: &'static [Self] = &[
        #[cfg(feature = "tokens")]
        Self::O200k,
        #[cfg(feature = "tokens")]
        Self::Cl100k,
        Self::Bytes4,
    ];

    /// `o200k`, `cl100k` or `bytes/4`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            #[cfg(feature = "tokens")]
            Self::O200k => "o200k",
            #[cfg(feature = "tokens")]
            Self::Cl100k => "cl100k",
            Self::Bytes4 => "bytes/4",
        }
    }

    /// Whether its figures are estimates, because no model counts like this.
    #[must_use]
    pub fn is_estimate(self) -> bool {
        self == Self::Bytes4
    }

    /// The tokenizer of a model by the name that requests give it, such as `gpt-4o-2024-08-06` or
    /// `openai/o3-mini`. A model whose tokenizer is not public, or not in this build, gets the
    /// estimate.
    #[must_use]
    pub fn for_model(name: &str) -> Self {
        let name = plain_name(name);
        // `ft:gpt-4o:mine` of a tuned model.
        let name = name.strip_prefix("ft:").unwrap_or(&name);
        let is_of = |family: &str| {
            let rest = name.strip_prefix(family);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        let mut known = FAMILIES.iter();
        let found = known.find(|(_, families)| families.split(' ').any(is_of));
        found
            .and_then(|(tokenizer, _)| tokenizer.parse().ok())
            .unwrap_or_default()
    }

    /// The one that fits the model of the newest of these snapshots that names one, or else this model; they are oldest
    /// first.
    pub(crate) fn fitting<'a>(
        snapshots: impl DoubleEndedIterator<Item = &'a Arc<Snapshot>>,
        otherwise: Option<&str>,
    ) -> Self {
        let model = snapshots
            .rev()
            .find_map(|snapshot| Call::from_snapshot(snapshot).model);
        let model = model.as_deref().or(otherwise);
        model.map_or_else(Self::default, Self::for_model)
    }

    /// The tokens of a text. `n log n` in its bytes for the worst text, such as one letter a million
    /// times, and linear for texts of words. Marks of special tokens, such as
    /// `<|endoftext|>`, count as the text they are. The first count with a vocabulary unpacks it.
    #[must_use]
    pub fn count(self, text: &str) -> u64 {
        match self {
            #[cfg(feature = "tokens")]
            Self::O200k => vocabulary::O200K.count(text),
            #[cfg(feature = "tokens")]
            Self::Cl100k => vocabulary::CL100K.count(text),
            Self::Bytes4 => (text.len() as u64).div_ceil(4),
        }
    }
}

/// The name of a model in small letters, without what gateways add to it: what stands before a `/`, the region
/// and vendor of Bedrock (`us.anthropic.`), its revision (`-v1:0`), a variant (`:free`).
pub(super) fn plain_name(model: &str) -> String {
    let name = model.trim().to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    // The name of a tuned model begins so.
    if name.starts_with("ft:") {
        return name.to_owned();
    }
    let vendors = name.split('.').take_while(|part| is_word(part)).count();
    // All of `a.b.c` are words in a name such as `openai.model`, and the last is the name.
    let vendors = vendors.min(name.split('.').count() - 1);
    let name = name.splitn(vendors + 1, '.').last().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    let revision = name
        .rsplit_once("-v")
        .filter(|(_, number)| is_number(number));
    let name = revision.map_or(name, |(name, _)| name);
    // Routers write `claude-sonnet-4.5`.
    if name.starts_with("claude-") {
        name.replace('.', "-")
    } else {
        name.to_owned()
    }
}

/// Whether a part before a `.` is a region or a vendor, and not the beginning of a name such as `gpt-4.1`.
fn is_word(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_lowercase())
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tokenizers, and the families of models that have them: the start of a name, which no letter or digit follows.
const FAMILIES: [(&str, &str); 2] = [
    (
        "o200k",
        "gpt-4o chatgpt-4o gpt-4.1 gpt-4.5 gpt-5 gpt-oss codex-mini o1 o3 o4",
    ),
    (
        "cl100k",
        // Azure writes 35.
        "gpt-4 gpt-3.5 gpt-35 text-embedding-3 text-embedding-ada-002",
    ),
];

impl fmt::Display for Tokenizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The error for a name that this build has no tokenizer of. See the example of [`Tokenizer`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no tokenizer `{0}`")]
pub struct UnknownTokenizer(pub String);

impl FromStr for Tokenizer {
    type Err = UnknownTokenizer;

    /// Reads a [`name`](Tokenizer::name); `o200k_base`, `cl100k_base` and `bytes` are the same.
    fn from_str(name: &str) -> Result<Self, UnknownTokenizer> {
        let short = match name {
            "bytes" => "bytes/4",
            name => name.strip_suffix("_base").unwrap_or(name),
        };
        let found = Self::ALL.iter().find(|known| known.name() == short);
        found
            .copied()
            .ok_or_else(|| UnknownTokenizer(name.to_owned()))
    }
}
