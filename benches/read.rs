//! Reading a document into a tree: loading without the index.
//!
//! Measured: one document of about 100,000 nodes and 31 MB in memory. `reader` is
//! [`read_document`] with all checks; `serde_json` is derived structs with a map for custom fields,
//! without checks.

use std::collections::HashMap;
use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use pactql::internals::tree::read_document;
use serde::Deserialize;

#[derive(Deserialize)]
#[allow(dead_code, reason = "reading the fields is what is measured")]
struct Node {
    id: Option<String>,
    #[serde(rename = "nodeType")]
    node_type: Option<String>,
    role: Option<String>,
    kind: Option<String>,
    key: Option<String>,
    #[serde(default)]
    offset: i64,
    ttl: Option<i64>,
    #[serde(default)]
    priority: i64,
    cycle: Option<i64>,
    #[serde(default)]
    created_at_ns: i64,
    #[serde(default)]
    creation_index: i64,
    created_at_iso: Option<String>,
    content: Option<serde_json::Value>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    children: Vec<Node>,
}

#[derive(Deserialize)]
#[allow(dead_code, reason = "reading the fields is what is measured")]
struct Document {
    cycle: Option<i64>,
    root: Node,
    #[serde(flatten)]
    rest: HashMap<String, serde_json::Value>,
}

/// A tree of `turns` turns in the spelling of a canonical export.
fn document(turns: u64) -> String {
    let mut state = 7u64;
    let mut random = move |below: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let words = [
        "the tool ",
        "answered ",
        "with ",
        "a table\\n",
        "of \\\"flights\\\" ",
        "on time; ",
        "nothing else ",
        "changed. ",
    ];
    let mut out = String::new();
    let mut node = 0u64;
    let block = |out: &mut String,
                 offset: i64,
                 random: &mut dyn FnMut(u64) -> u64,
                 node: &mut u64| {
        *node += 1;
        let roles = ["assistant", "system", "tool", "user"];
        let kinds = ["call", "image", "note", "plan", "result", "summary", "text"];
        let length = random(16) + 1;
        let content: String = (0..length).map(|_| words[random(8) as usize]).collect();
        let _ = write!(
            out,
            "{{\"content\":\"{}\",\"created_at_iso\":\"2024-05-01T00:00:{:02}Z\",\"created_at_ns\":{},\"creation_index\":{},\"cycle\":{},\"id\":\"cb:{node:09}\",\"kind\":\"{}\",\"nodeType\":\"cb\",\"offset\":{offset},\"priority\":{},\"role\":\"{}\",\"ttl\":{}}}",
            content,
            *node % 60,
            1_700_000_000_000_000_000 + *node,
            *node % 9,
            *node / 8,
            kinds[random(7) as usize],
            random(10),
            roles[random(4) as usize],
            if random(30) == 0 { "3" } else { "null" },
        );
    };
    out.push_str("{\"cycle\":1,\"root\":{\"children\":[{\"id\":\"sys\",\"nodeType\":\"^sys\"},{\"children\":[");
    for turn in 0..turns {
        if turn > 0 {
            out.push(',');
        }
        out.push_str("{\"children\":[");
        let (pre, post) = (random(4), random(3));
        for index in 0..pre {
            block(&mut out, index as i64 - pre as i64, &mut random, &mut node);
            out.push(',');
        }
        out.push_str("{\"children\":[");
        for index in 0..random(7) + 2 {
            if index > 0 {
                out.push(',');
            }
            block(&mut out, index as i64, &mut random, &mut node);
        }
        let _ = write!(
            out,
            "],\"id\":\"mc:{turn:09}\",\"nodeType\":\"mc\",\"offset\":0}}"
        );
        for index in 0..post {
            out.push(',');
            block(&mut out, index as i64 + 1, &mut random, &mut node);
        }
        let _ = write!(
            out,
            "],\"created_at_ns\":{turn},\"id\":\"mt:{turn:09}\",\"nodeType\":\"mt\"}}"
        );
    }
    out.push_str("],\"id\":\"seq\",\"nodeType\":\"^seq\"},{\"id\":\"ah\",\"nodeType\":\"^ah\"}],\"id\":\"root\"}}");
    out
}

fn read(criterion: &mut Criterion) {
    let text = document(11_820);
    let bytes = text.as_bytes();
    assert!(read_document(bytes).is_ok(), "a good document");
    assert!(serde_json::from_slice::<Document>(bytes).is_ok());
    let mut group = criterion.benchmark_group("read");
    group
        .throughput(Throughput::Bytes(bytes.len() as u64))
        .sample_size(20);
    group.bench_function("reader", |b| b.iter(|| read_document(black_box(bytes))));
    group.bench_function("serde_json", |b| {
        b.iter(|| serde_json::from_slice::<Document>(black_box(bytes)));
    });
    group.finish();
}

criterion_group!(benches, read);
criterion_main!(benches);
