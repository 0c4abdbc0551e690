//! One case for each sentence of LANGUAGE §1–§8, good and bad.
//!
//! A case is the rule, a selector, and its answer in one line (`support::answer`): the ids it must
//! give, in order and separated by blanks, what changed, or the code of its error. Every good case is put to the engine and to the reference
//! interpreter, so the tables check both.

mod chains;
mod comparing;
mod nodes;
mod order;
mod ranges;
mod time;
mod words;

use crate::support::engine::{self, Engine};
use crate::support::selector::Edition;
use crate::support::tree::Session;
use crate::support::{answer, outline, parse};

pub(super) type Case<'a> = (&'a str, &'a str, &'a str);

/// Puts every case to both over the session of the outline.
pub(super) fn check(edition: Edition, outline: &str, cases: &[Case<'_>]) {
    check_lines(edition, &outline::lines(outline), cases);
}

pub(super) fn check_lines(edition: Edition, lines: &[String], cases: &[Case<'_>]) {
    let engine = Engine::new(edition);
    let session = engine::open(&lines.join("\n"));
    let reference = Session::from_lines(lines);
    let mut wrong = Vec::new();
    for (rule, text, expected) in cases {
        let answer = answer::asked(&engine, &session, text).unwrap_or_else(|code| code);
        if answer != *expected {
            wrong.push(format!(
                "{rule}\n  {text}\n  expected {expected}\n  engine   {answer}"
            ));
        }
        if expected.starts_with("E_") && *expected != "E_SNAPSHOT_NOT_FOUND" {
            continue;
        }
        let sel = parse::parse(text, edition);
        let answer = answer::walked(&reference, edition, &sel, text);
        let answer = answer.unwrap_or_else(str::to_owned);
        if answer != *expected {
            wrong.push(format!(
                "{rule}\n  {text}\n  expected {expected}\n  walked   {answer}"
            ));
        }
    }
    assert!(wrong.is_empty(), "{edition:?}\n{}", wrong.join("\n"));
}

/// A session with every region, explicit and implicit cores, nested and loose nodes.
pub(super) const TREE: &str = "
root -
  sys ^sys key=policy offset=3
    s1 cb role=system kind=text
    s2 cb:summary role=system
  seq ^seq
    t1 mt created_at_ns=1
      t1a cb offset=-1 role=tool
      t1m mc offset=0
        u1 cb role=user kind=text
        v1 cb role=assistant kind=text
      t1z cb offset=1 kind=result
    t2 mt created_at_ns=2
      t2a cb offset=-2
      u2 cb role=user
      v2 block role=assistant
      t2z cb offset=2
    t3 seg created_at_ns=3
      t3m cont
        u3 block:note role=user
      n1 mt offset=1
        x2 cb offset=-1
        x1 cb
    loose cb created_at_ns=9
  ah ^ah
    p1 cb offset=-1
      p1c cb role=user
    h1 cb role=user
    q1 cb offset=1
  stray custom:thing
  untyped -
    inner -
";
