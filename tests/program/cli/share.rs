//! `share`: where a page and a receipt are written, and what is said about it.

use super::{AGENT, Scratch, answer, fails, pactql, with_input};
use serde_json::Value;

#[test]
fn a_page_is_written_to_a_new_file_or_to_standard_output() {
    let scratch = Scratch::new("share-page");
    let page = scratch.path("page.html");
    let ran = pactql(&["share", AGENT, "--html", "-o", &page]);
    assert_eq!((ran.code, &*ran.out), (0, ""));
    assert_eq!(
        ran.err,
        "note: the working state is left out: it is not a step yet\n"
    );
    let written = std::fs::read_to_string(&page).expect("the page");
    assert!(written.starts_with("<!doctype html>\n") && written.ends_with("</html>\n"));
    assert_eq!(answer(&["share", AGENT, "--html", "-o", "-"]), written);

    let again = ["share", AGENT, "--html", "-o", &page];
    let message = fails(&again, 1, "exists");
    assert!(message.contains("`--force` replaces it"), "{message}");
    assert_eq!(answer(&[&again[..], &["--force"]].concat()), "");
    fails(
        &["share", &page, "--html", "-o", &page, "--force"],
        1,
        "is the input",
    );
}

#[test]
fn a_page_without_an_output_is_a_file_with_the_name_of_the_session() {
    let scratch = Scratch::new("share-file");
    let text = std::fs::read_to_string(AGENT).expect("the fixture");
    scratch.write("run.jsonl", &text);
    let run = |more: &[&str]| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_pactql"));
        let command = command.args(["share", "run.jsonl", "--html"]).args(more);
        let ran = command.current_dir(&scratch.0).output().expect("it runs");
        (
            ran.status.code(),
            String::from_utf8_lossy(&ran.stdout).into_owned(),
        )
    };
    assert_eq!(run(&[]), (Some(0), "run.html\n".to_owned()));
    let page = std::fs::read_to_string(scratch.path("run.html")).expect("the page");
    assert!(page.ends_with("</html>\n"));
    scratch.write("run.html", "mine");
    assert_eq!(run(&[]), (Some(1), String::new()));
    assert_eq!(
        std::fs::read_to_string(scratch.path("run.html")).expect("it"),
        "mine"
    );
    assert_eq!(run(&["--force"]), (Some(0), "run.html\n".to_owned()));
}

#[test]
fn a_page_is_named_after_the_file_and_not_its_place() {
    let scratch = Scratch::new("share-name");
    let text = std::fs::read_to_string(AGENT).expect("the fixture");
    let session = scratch.write("run one.jsonl", &text);
    let page = answer(&["share", &session, "--html", "-o", "-"]);
    assert!(page.contains("\"title\":\"run one.jsonl\""));
    assert!(!page.contains("cli-share-name"));
    let piped = with_input(&["share", "-", "--html", "-o", "-"], text.as_bytes());
    assert!(piped.out.contains("\"title\":\"standard input\""));
    let store = scratch.path("agents.db");
    answer(&["import", &session, "-o", &format!("{store}#support/42")]);
    let page = answer(&["share", &format!("{store}#support/42"), "--html", "-o", "-"]);
    assert!(page.contains("\"title\":\"support/42\""));
    assert!(!page.contains("agents.db"));
}

#[test]
fn what_is_redacted_is_counted() {
    let arguments = [
        "share",
        AGENT,
        "--html",
        "-o",
        "-",
        "--redact",
        "LC-[0-9]+",
        "--redact",
        "no such text",
    ];
    let ran = pactql(&arguments);
    assert_eq!(ran.code, 0);
    assert!(!ran.out.contains("LC-20417"));
    let (_, rest) = ran.err.split_once('\n').expect("a note");
    let (counted, rest) = rest.split_once('\n').expect("lines");
    assert!(
        counted.starts_with("redacted ") && counted.ends_with(" matches"),
        "{counted}"
    );
    assert_eq!(rest, "warning: nothing matches `no such text`\n");
}

#[test]
fn a_receipt_is_json_for_programs_and_text_for_people() {
    let scratch = Scratch::new("share-receipt");
    let json = answer(&["share", "--json", AGENT, "--receipt"]);
    let receipt: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(receipt["format"], "pactql receipt 1");
    assert_eq!(receipt["steps"].as_array().map(Vec::len), Some(6));
    let file = scratch.path("receipt.json");
    answer(&["share", "--json", AGENT, "--receipt", "-o", &file]);
    assert_eq!(std::fs::read_to_string(&file).expect("the receipt"), json);
    let text = answer(&["share", AGENT, "--receipt", "--format", "text"]);
    let hash = receipt["blocks"][0]["sha256"].as_str().expect("a hash");
    assert!(
        text.contains(hash) && text.contains("\n@c6  2026-"),
        "{text}"
    );
    assert!(!text.contains("Larkspur") && !json.contains("Larkspur"));
    let named = answer(&[
        "share",
        "--json",
        AGENT,
        "--receipt",
        "--tokenizer",
        "cl100k",
    ]);
    assert!(named.contains("\"tokenizer\":\"cl100k\""));
    fails(
        &["share", AGENT, "--receipt", "--tokenizer", "words"],
        3,
        "expected one of",
    );
}
