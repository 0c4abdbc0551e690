//! Turns text into grammar tokens, one at a time.
//!
//! The lexer settles three things that a context-free grammar cannot express well, which keeps
//! the grammar small and LR(1):
//!
//! - White space is a token only where it joins two steps. Around `>` and `,`, before braces and
//!   controls, and inside brackets it is dropped.
//! - A word after `.` or `#` ends before its trailing pseudo-classes (LANGUAGE §2):
//!   `.cb:summary:first` is the type `cb:summary` followed by `:first`.
//! - A run of tags at the start of a group is one step, with or without white space. Elsewhere a
//!   tag after white space gets its own token, unlike an attached tag (LANGUAGE §4).
//!
//! A lexical mistake is recorded and replaced by a harmless token, so the lexer always reaches
//! the end of the text. Every step moves forward, so the time is linear in the text.

mod chain;
mod inside;
mod lexer;
mod time;

use self::lexer::LexerMode;
pub(super) use self::lexer::{Lexed, Lexer};

impl<'s> Iterator for Lexer<'s> {
    type Item = Lexed<'s>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.pending.is_some() {
            return self.pending.take();
        }
        if let Some(kind) = self.range.take() {
            if self.range_end {
                self.range_end = false;
                if let Some(end) = self.second_end(kind) {
                    return Some(end);
                }
            } else if let Some(mark) = self.range_mark() {
                self.range = Some(kind);
                self.range_end = true;
                return Some(mark);
            }
        }
        match self.mode() {
            LexerMode::Chain | LexerMode::Condition => self.chain(),
            mode @ (LexerMode::Props | LexerMode::Position | LexerMode::Node) => self.inside(mode),
            LexerMode::Depth => self.depth(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Lexer;
    use crate::query::syntax::token::Token;

    fn tokens(text: &str) -> Vec<Token<'_>> {
        Lexer::new(text).map(|(_, token, _)| token).collect()
    }

    #[test]
    fn white_space_is_a_token_only_between_steps() {
        use Token::{Child, Comma, Space, Star};
        assert_eq!(tokens(" * "), [Star]);
        assert_eq!(tokens("* *"), [Star, Space, Star]);
        assert_eq!(tokens("* > *\n,\t*"), [Star, Child, Star, Comma, Star]);
    }

    #[test]
    fn a_run_of_tags_starts_a_group_and_later_tags_filter() {
        use Token::{Comma, Star, Tag, TagSpace};
        assert_eq!(tokens("+a +b"), [Tag("a"), Tag("b")]);
        assert_eq!(
            tokens("*+a +b +c"),
            [Star, Tag("a"), TagSpace, Tag("b"), TagSpace, Tag("c")]
        );
        assert_eq!(tokens("*, +a +b"), [Star, Comma, Tag("a"), Tag("b")]);
    }
}
