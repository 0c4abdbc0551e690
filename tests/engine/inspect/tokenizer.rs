//! Tokenizers: their vocabularies are the published ones, and their counts those of the Python
//! package `tiktoken`.

use crate::support::random::few;
use pactql::inspect::Tokenizer;
use sha2::{Digest, Sha256};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The tokenizers with a vocabulary, its name, and the SHA-256 of the file it is published as.
const VOCABULARIES: [(Tokenizer, &str, &str); 2] = [
    (
        Tokenizer::O200k,
        "o200k_base",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    (
        Tokenizer::Cl100k,
        "cl100k_base",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
];

/// The vocabulary in the form in which it is published: each token in base64 with its rank.
fn published(name: &str) -> String {
    let encoding = tiktoken::get_encoding(name).unwrap();
    let mut file = String::new();
    let mut last = 0;
    for rank in 0..encoding.vocab_size() as u32 * 2 {
        let token = encoding.decode(&[rank]);
        // Special tokens come after a gap.
        if token.is_empty() || rank > last + 1 {
            continue;
        }
        last = rank;
        let _ = writeln!(file, "{} {rank}", base64(&token));
    }
    file
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            text.push(if at <= group.len() {
                LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char
            } else {
                '='
            });
        }
    }
    text
}

#[test]
fn vocabularies_are_the_published_ones() {
    for (_, name, expected) in VOCABULARIES {
        let hash = Sha256::digest(published(name));
        let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hash, expected, "{name}");
    }
}

#[test]
fn counts_of_known_texts() {
    for line in include_str!("texts.jsonl").lines() {
        let (text, o200k, cl100k): (String, u64, u64) = serde_json::from_str(line).unwrap();
        assert_eq!(Tokenizer::O200k.count(&text), o200k, "o200k of {text:?}");
        assert_eq!(Tokenizer::Cl100k.count(&text), cl100k, "cl100k of {text:?}");
        assert_eq!(
            Tokenizer::Bytes4.count(&text),
            (text.len() as u64).div_ceil(4)
        );
    }
}

/// One text a million times, which a merge that looks at each pair anew would take hours for.
#[test]
fn hostile_texts_end() {
    // By default a sixteenth of it, which takes as much of that.
    let bytes: u64 = if few() { 1 << 16 } else { 1 << 20 };
    for (piece, tokens) in [
        ("\u{2003}\u{a0}x ", 599_184),
        ("a", 131_072),
        (" ", 8_192),
        ("=", 16_384),
        ("漢", 349_525),
    ] {
        let text = piece.repeat(bytes as usize / piece.len());
        let tokens = tokens * bytes / (1 << 20);
        let counted = Tokenizer::O200k.count(&text);
        assert!(counted.abs_diff(tokens) <= 1, "{piece:?}: {counted}");
        assert!(few() || counted == tokens, "{piece:?}: {counted}");
    }
}

#[test]
fn models() {
    for (model, expected) in [
        ("gpt-4o", "o200k"),
        ("gpt-4o-mini-2024-07-18", "o200k"),
        ("openai/gpt-4o", "o200k"),
        ("chatgpt-4o-latest", "o200k"),
        ("ft:gpt-4o-mini:org::id", "o200k"),
        ("GPT-4.1-nano", "o200k"),
        ("gpt-4.5-preview", "o200k"),
        ("gpt-5", "o200k"),
        ("gpt-5.1-codex", "o200k"),
        ("gpt-oss-120b", "o200k"),
        ("o1", "o200k"),
        ("o1-preview", "o200k"),
        ("o3-mini", "o200k"),
        ("o4-mini", "o200k"),
        ("gpt-4", "cl100k"),
        ("gpt-4-turbo-2024-04-09", "cl100k"),
        ("gpt-4-0613", "cl100k"),
        ("azure/gpt-35-turbo", "cl100k"),
        ("gpt-3.5-turbo", "cl100k"),
        ("gpt-40", "bytes/4"),
        ("o100", "bytes/4"),
        ("claude-sonnet-4-5", "bytes/4"),
        ("gemini-2.5-pro", "bytes/4"),
        ("my-gpt-4o", "bytes/4"),
        ("", "bytes/4"),
    ] {
        assert_eq!(Tokenizer::for_model(model).name(), expected, "{model}");
    }
}

#[test]
fn names() {
    for tokenizer in Tokenizer::ALL {
        assert_eq!(tokenizer.name().parse(), Ok(*tokenizer));
        assert_eq!(
            serde_json::json!(tokenizer),
            serde_json::json!(tokenizer.name())
        );
    }
    assert_eq!("o200k_base".parse(), Ok(Tokenizer::O200k));
    let error = "gpt2".parse::<Tokenizer>().unwrap_err();
    assert_eq!(error.to_string(), "there is no tokenizer `gpt2`");
}

/// A generator of numbers; the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        ((self.0 >> 33) % u64::from(end)) as u32
    }

    /// A text of runs of letters of some scripts, words, numbers, white space and signs.
    fn text(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..self.below(24) {
            let times = 1 + self.below(8);
            match self.below(6) {
                0 => text.push_str(WORDS[self.below(WORDS.len() as u32) as usize]),
                1 => {
                    let sign = SPACES[self.below(SPACES.len() as u32) as usize];
                    text.extend(std::iter::repeat_n(sign, times as usize));
                }
                2 => (0..times).for_each(|_| text.push(char::from(33 + self.below(94) as u8))),
                // Any character at all.
                3 => text.extend(char::from_u32(self.below(0x11_0000))),
                _ => {
                    let (from, to) = SCRIPTS[self.below(SCRIPTS.len() as u32) as usize];
                    let letters =
                        (0..times).filter_map(|_| char::from_u32(from + self.below(to - from)));
                    text.extend(letters.collect::<Vec<_>>());
                }
            }
        }
        text
    }
}

const WORDS: &[&str] = &[
    "the",
    " quick",
    "Brown",
    " FOX",
    "isn't",
    "I'LL",
    "we've",
    " 'S",
    "don’t",
    "I'ſ",
    "HTTPServer",
    "camelCase",
    "_x",
    " return",
    "1,234.56",
    "2026-01-31T12:00:00Z",
    "\"key\": ",
    "</div>",
    "=>",
    "::",
    "\r\n",
    "\n\n    ",
    "<|endoftext|>",
];

const SPACES: &[char] = &[
    ' ', ' ', ' ', '\n', '\t', '\r', '\u{b}', '\u{85}', '\u{a0}', '\u{1680}', '\u{2003}',
    '\u{2028}', '\u{202f}', '\u{3000}', '\u{200b}',
];

/// Scripts, marks, numbers and signs by their code points.
const SCRIPTS: &[(u32, u32)] = &[
    (0x41, 0x5b),
    (0x61, 0x7b),
    (0x30, 0x3a),
    (0xa1, 0x100),
    (0x100, 0x250),
    (0x250, 0x300),
    (0x300, 0x370),
    (0x370, 0x400),
    (0x400, 0x530),
    (0x531, 0x590),
    (0x5b0, 0x5f5),
    (0x600, 0x700),
    (0x700, 0x7c0),
    (0x900, 0x980),
    (0x980, 0xa00),
    (0xb80, 0xc00),
    (0xe00, 0xe80),
    (0xf00, 0x1000),
    (0x1000, 0x10a0),
    (0x10a0, 0x1100),
    (0x1100, 0x1200),
    (0x1200, 0x1380),
    (0x13a0, 0x1400),
    (0x1780, 0x1800),
    (0x1800, 0x18b0),
    (0x1d00, 0x1e00),
    (0x1e00, 0x2000),
    (0x2000, 0x2070),
    (0x2070, 0x20d0),
    (0x20d0, 0x2100),
    (0x2100, 0x2200),
    (0x2200, 0x2300),
    (0x2460, 0x2500),
    (0x2500, 0x2800),
    (0x2c00, 0x2de0),
    (0x3000, 0x3100),
    (0x3105, 0x3400),
    (0x4e00, 0x9fff),
    (0xa000, 0xa4d0),
    (0xa960, 0xaa00),
    (0xac00, 0xd7a4),
    (0xe000, 0xe100),
    (0xf900, 0xfb00),
    (0xfb00, 0xfe00),
    (0xfe00, 0xff00),
    (0xff00, 0xfff0),
    (0x1_0300, 0x1_0400),
    (0x1_0400, 0x1_04b0),
    (0x1_0e60, 0x1_0e80),
    (0x1_1000, 0x1_1080),
    (0x1_2000, 0x1_2100),
    (0x1_d400, 0x1_d800),
    (0x1_e900, 0x1_e960),
    (0x1_f000, 0x1_fa00),
    (0x2_0000, 0x2_0200),
    (0xe_0100, 0xe_01f0),
];

/// Prints the counts of each line of a file of JSON strings, with vocabularies of a directory.
const SCRIPT: &str = r#"
import json, sys
import tiktoken, tiktoken.load
from tiktoken_ext import openai_public

directory, names = sys.argv[1], sys.argv[2:]
read = tiktoken.load.load_tiktoken_bpe
found = []
for name in names:
    # The package checks the hash of the file.
    openai_public.load_tiktoken_bpe = lambda _, expected_hash=None: read(f"{directory}/{name}", expected_hash)
    found.append(tiktoken.Encoding(**getattr(openai_public, name)()))
for line in open(f"{directory}/texts.jsonl", encoding="utf-8"):
    text = json.loads(line)
    print(*(len(encoding.encode_ordinary(text)) for encoding in found))
"#;

/// Needs Python with `tiktoken`, which `PACTQL_PYTHON` or else `python3` has; `.ci/run` makes one.
#[test]
fn counts_are_those_of_the_python_package() {
    let python = std::env::var("PACTQL_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let found = Command::new(&python)
        .args(["-c", "import tiktoken"])
        .output();
    if !found.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: {python} has no package tiktoken");
        return;
    }
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("tiktoken");
    std::fs::create_dir_all(&directory).unwrap();
    let mut random = Random(1);
    let texts: Vec<String> = (0..10_000).map(|_| random.text()).collect();
    let lines: String = texts
        .iter()
        .map(|text| format!("{}\n", serde_json::json!(text)))
        .collect();
    std::fs::write(directory.join("texts.jsonl"), lines).unwrap();
    for (_, name, _) in VOCABULARIES {
        std::fs::write(directory.join(name), published(name)).unwrap();
    }
    let names = VOCABULARIES.map(|(_, name, _)| name);
    let output = run(&python, &directory, &names);
    assert_eq!(output.lines().count(), texts.len());
    for (line, text) in output.lines().zip(&texts) {
        let ours = VOCABULARIES.map(|(tokenizer, ..)| tokenizer.count(text).to_string());
        assert_eq!(line, ours.join(" "), "{text:?}");
    }
}

fn run(python: &str, directory: &Path, names: &[&str]) -> String {
    let output = Command::new(python)
        .args(["-c", SCRIPT])
        .arg(directory)
        .args(names)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    String::from_utf8(output.stdout).unwrap()
}
