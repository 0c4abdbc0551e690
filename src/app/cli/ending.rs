//! How a file of lines ends, as `stats` and `verify` say it.

use crate::tree::seal::Ending;

/// A word for it in JSON.
pub(super) fn name(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "sealed",
        Ending::LineFeed => "line feed",
        Ending::NoLineFeed => "no line feed",
    }
}

/// A line that says what it means.
pub(super) fn text(ending: Ending) -> &'static str {
    match ending {
        Ending::Sealed => "with a closing line, which fits: nothing is missing\n",
        Ending::LineFeed => {
            "with a line feed; lines could be missing, which `export --seal` would show\n"
        }
        Ending::NoLineFeed => "without a line feed, as if it were still being written\n",
    }
}
