//! Canonical JSON and content hashes (RUNTIME §2). The expected texts and digests are those of
//! Python's `json.dumps(sort_keys=True, separators=(',', ':'), ensure_ascii=True)` and `hashlib`.

use pactql::internals::json::{canonical, write_float, write_string};
use pactql::internals::tree::Fields;
use pactql::internals::tree::document::DocumentBody;
use pactql::internals::tree::hash::{content_hash, hex};
use pactql::internals::tree::read_document;
use proptest::prelude::*;

#[test]
fn canonical_values() {
    let cases: &[(&str, &str)] = &[
        (r#"null"#, r#"null"#),
        (r#"true"#, r#"true"#),
        (r#"false"#, r#"false"#),
        (r#"0"#, r#"0"#),
        (r#"-0"#, r#"0"#),
        (r#"-0.0"#, r#"-0.0"#),
        (r#"0.0"#, r#"0.0"#),
        (r#"1"#, r#"1"#),
        (r#"1.0"#, r#"1.0"#),
        (r#"-1.50"#, r#"-1.5"#),
        (r#"1e5"#, r#"100000.0"#),
        (r#"1E5"#, r#"100000.0"#),
        (r#"1e16"#, r#"1e+16"#),
        (r#"1e15"#, r#"1000000000000000.0"#),
        (r#"123456789012345680.0"#, r#"1.2345678901234568e+17"#),
        (r#"1e22"#, r#"1e+22"#),
        (r#"1e-4"#, r#"0.0001"#),
        (r#"1e-5"#, r#"1e-05"#),
        (r#"0.0001"#, r#"0.0001"#),
        (r#"0.00001234"#, r#"1.234e-05"#),
        (r#"1e-7"#, r#"1e-07"#),
        (r#"1.5e-7"#, r#"1.5e-07"#),
        (r#"5e-324"#, r#"5e-324"#),
        (r#"2.2250738585072014e-308"#, r#"2.2250738585072014e-308"#),
        (r#"1.7976931348623157e308"#, r#"1.7976931348623157e+308"#),
        (r#"1e-400"#, r#"0.0"#),
        (r#"0e999"#, r#"0.0"#),
        (r#"9007199254740993.0"#, r#"9007199254740992.0"#),
        (r#"0.1"#, r#"0.1"#),
        (r#"0.30000000000000004"#, r#"0.30000000000000004"#),
        (r#"100.0"#, r#"100.0"#),
        (r#"1e+2"#, r#"100.0"#),
        (
            r#"12345678901234567890123456789"#,
            r#"12345678901234567890123456789"#,
        ),
        (r#"-98765432109876543210"#, r#"-98765432109876543210"#),
        (r#"18446744073709551616"#, r#"18446744073709551616"#),
        (r#"3.141592653589793"#, r#"3.141592653589793"#),
        (r#"1234567890123456.7"#, r#"1234567890123456.8"#),
        (r#"12345678901234567.8"#, r#"1.2345678901234568e+16"#),
        (r#"9999999999999998.0"#, r#"9999999999999998.0"#),
        (r#"99999999999999990.0"#, r#"9.999999999999998e+16"#),
        (r#"1e21"#, r#"1e+21"#),
        (r#"123e-10"#, r#"1.23e-08"#),
        (r#"0.000123"#, r#"0.000123"#),
        (r#"4.35"#, r#"4.35"#),
        (r#"2.5e-3"#, r#"0.0025"#),
        (r#"1e100"#, r#"1e+100"#),
        (r#""""#, r#""""#),
        (r#""a""#, r#""a""#),
        ("\"\u{e9}\"", r#""\u00e9""#),
        (r#""\u00e9""#, r#""\u00e9""#),
        (r#""\u00E9""#, r#""\u00e9""#),
        (r#""\u007f""#, r#""\u007f""#),
        ("\"\u{7f}\"", r#""\u007f""#),
        (r#""~ ""#, r#""~ ""#),
        (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
        ("\"\u{1f600}\"", r#""\ud83d\ude00""#),
        (r#""\/""#, r#""/""#),
        (r#""/""#, r#""/""#),
        (r#""\b\f\n\r\t\"\\""#, r#""\b\f\n\r\t\"\\""#),
        (r#""\u0000\u001f""#, r#""\u0000\u001f""#),
        ("\"\\u2028\u{2029}\"", r#""\u2028\u2029""#),
        ("\"\u{ffff}\"", r#""\uffff""#),
        (r#""\u0041""#, r#""A""#),
        (r#"[]"#, r#"[]"#),
        (r#"{}"#, r#"{}"#),
        (r#"[ ]"#, r#"[]"#),
        (r#"{ }"#, r#"{}"#),
        (r#"[1, 2 ,3]"#, r#"[1,2,3]"#),
        (r#"{"b":1,"a":2}"#, r#"{"a":2,"b":1}"#),
        (
            r#"{"\u0062":1,"a":{"z":[],"y":{}}}"#,
            r#"{"a":{"y":{},"z":[]},"b":1}"#,
        ),
        (r#"[[],[[]],{"a":[{}]}]"#, r#"[[],[[]],{"a":[{}]}]"#),
        (
            "{\"\u{e9}\":1,\"z\":2,\"\u{1f600}\":3,\"\u{ffff}\":4}",
            r#"{"z":2,"\u00e9":1,"\uffff":4,"\ud83d\ude00":3}"#,
        ),
        (r#"{"a":1,"B":2,"":3," ":4}"#, r#"{"":3," ":4,"B":2,"a":1}"#),
        (
            r#"{"a.b":[1e5,{"x":null,"w":true}],"a":-0}"#,
            r#"{"a":0,"a.b":[100000.0,{"w":true,"x":null}]}"#,
        ),
        (
            r#"{"k10":0,"k9":0,"k8":0,"k7":0,"k6":0,"k5":0,"k4":0,"k3":0,"k2":0,"k1":0}"#,
            r#"{"k1":0,"k10":0,"k2":0,"k3":0,"k4":0,"k5":0,"k6":0,"k7":0,"k8":0,"k9":0}"#,
        ),
    ];
    for (raw, expected) in cases {
        assert_eq!(canonical(raw), *expected, "{raw}");
        assert_eq!(canonical(expected), *expected, "again: {raw}");
    }
}

#[test]
fn content_hashes() {
    let cases: &[(&str, &str)] = &[
        (
            r#"{}"#,
            "3d81012112ce288f5f9061f4973ab485bbe28d04ce7989ab351215f75d5a2058",
        ),
        (
            r#"{"content":"Hello world","role":"user","ttl":5}"#,
            "bd991081a0a67c7476399d89d1638f2931cd261208cdc9965502b18a04f1dec6",
        ),
        (
            r#"{"content":"Hello world","role":"user","ttl":10,"offset":3}"#,
            "bd991081a0a67c7476399d89d1638f2931cd261208cdc9965502b18a04f1dec6",
        ),
        (
            r#"{"content":null,"role":null,"kind":null}"#,
            "c4cfdc42164db4ec87a742435eeb6bcd954f0f127da2ef3be6c62137f783055d",
        ),
        (
            r#"{"content":"é😀","kind":"text","role":"tool"}"#,
            "ca247e5d28adc69e8f9ce4f5b362beb3a1dddc7f7e29120dd9fe9028057bc66e",
        ),
        (
            r#"{"content":{"b":[1,2.50,1e16,1e-7],"a":"\u007f"},"data_x":{"z":null,"y":-0.0},"content_type":"md","content_hash":"zz"}"#,
            "f30022d4bc46c93298300726dc8275a65e515fb2820afb34696de1041692414e",
        ),
        (
            r#"{"data_b":1,"data_a":123456789012345678901234567890,"content_z":[],"content_a":true}"#,
            "1e67149a1c809fbb283f0bcd4eea30f61d83e6c689071b87134cc0c20281588d",
        ),
        (
            r#"{"tags":["a"],"status":"x","key":"k","data_":1,"content_":2,"datax":3}"#,
            "7ae8f155bb817a0ff738a39b220653d1644bfbd2dd9ab38d8aeab643ad5ec817",
        ),
        (
            r#"{"role":"","kind":"k:\n","content":""}"#,
            "27047639a22a3d2e8ccfe5d302471c5090e3f2b7529011405b385588f749884d",
        ),
        (
            r#"{"kind":null,"content_x":1}"#,
            "6a7ac30f229b0f43e7b82f487ce71b3676afe7e714a438e94c5787fcf6e96e8d",
        ),
    ];
    for (node, expected) in cases {
        let document = read_document(format!("{{\"root\":{node}}}").as_bytes()).expect(node);
        let DocumentBody::Full(tree) = document.body else {
            panic!("a full document")
        };
        let [_, role, kind, _] = tree.headers(0).texts;
        let hash = content_hash(role, kind, Fields::new(tree.record(0)));
        assert_eq!(hex(&hash), *expected, "{node}");
    }
}

#[test]
fn deep_and_wide_values_do_not_recurse() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(canonical(&deep), deep);
    let wide = format!("[{}1]", "{},".repeat(100_000));
    assert_eq!(canonical(&wide), wide);
}

/// Doubles from all bit patterns, and those that are halfway between two decimals of the same
/// length: a whole number of 15 digits and an odd number of quarters or eighths.
fn finite() -> impl Strategy<Value = f64> {
    let ties =
        (0..3u32, 1u64 << 46..1 << 52, any::<bool>()).prop_map(|(shift, number, negative)| {
            let value = (number | 1) as f64 / f64::from(2u32 << shift);
            if negative { -value } else { value }
        });
    prop_oneof![
        any::<u64>()
            .prop_map(f64::from_bits)
            .prop_filter("finite", |value| value.is_finite()),
        ties,
        any::<i32>().prop_map(|number| f64::from(number) / 1000.0),
    ]
}

fn written(value: f64) -> String {
    let mut text = Vec::new();
    write_float(&mut text, value).expect("memory");
    String::from_utf8(text).expect("ASCII")
}

/// Doubles whose text differs between writers, as Python 3 writes them.
#[test]
#[expect(
    clippy::excessive_precision,
    reason = "the digits are exact: what is tested is how they are rounded"
)]
fn floats_are_pythons() {
    let cases = [
        (773_813_143_760_026.25, "773813143760026.2"),
        (773_813_143_760_026.75, "773813143760026.8"),
        (2.980_232_238_769_531_25e-8, "2.9802322387695312e-08"),
        (9_007_199_254_740_993.0, "9007199254740992.0"),
        (5.684_341_886_080_802e-14, "5.684341886080802e-14"),
        (9.5367431640625e-07, "9.5367431640625e-07"),
        (f64::from_bits(1), "5e-324"),
        (f64::MAX, "1.7976931348623157e+308"),
        (f64::MIN_POSITIVE, "2.2250738585072014e-308"),
        (1e16, "1e+16"),
        (9_999_999_999_999_998.0, "9999999999999998.0"),
        (1e22, "1e+22"),
        (1e23, "1e+23"),
        (0.0001, "0.0001"),
        (0.00012, "0.00012"),
        (0.00001, "1e-05"),
        (-0.0, "-0.0"),
        (-1.5, "-1.5"),
        (100.0, "100.0"),
        (0.1, "0.1"),
        (123.456, "123.456"),
    ];
    for (value, expected) in cases {
        assert_eq!(written(value), expected);
    }
}

/// Doubles against Python itself: 20,000 in CI.
#[test]
fn floats_are_those_of_an_installed_python() {
    use proptest::strategy::ValueTree;
    use std::io::Write;
    use std::process::{Command, Stdio};
    const PROGRAM: &str = "import struct, sys\n\
        for line in sys.stdin: print(repr(struct.unpack('>d', bytes.fromhex(line.strip()))[0]))";
    let version = Command::new("python3").arg("--version").output();
    if !version.is_ok_and(|output| output.status.success()) {
        println!("SKIPPED: python3 is not installed");
        return;
    }
    let mut child = Command::new("python3")
        .args(["-c", PROGRAM])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let count = crate::support::random::share(80_000);
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut draw = || finite().new_tree(&mut runner).expect("a double").current();
    let values: Vec<f64> = (0..count).map(|_| draw()).collect();
    let mut input = child.stdin.take().expect("a pipe");
    let lines: String = values
        .iter()
        .map(|value| format!("{:016x}\n", value.to_bits()))
        .collect();
    let writer = std::thread::spawn(move || input.write_all(lines.as_bytes()));
    let output = child.wait_with_output().expect("python3 ends");
    writer
        .join()
        .expect("no panic")
        .expect("python3 reads everything");
    let printed = String::from_utf8(output.stdout).expect("ASCII");
    assert_eq!(printed.lines().count(), values.len());
    for (value, expected) in values.iter().zip(printed.lines()) {
        assert_eq!(written(*value), expected, "{:016x}", value.to_bits());
    }
}

/// Any JSON value.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<i16>().prop_map(|n| (f64::from(n) / 4.0).into()),
        any::<String>().prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            proptest::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(crate::support::random::property(4_000))]

    /// Canonical text has the same value, is ASCII, and is its own canonical text.
    #[test]
    fn canonical_means_the_same(value in value(), pretty in any::<bool>()) {
        let raw = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.expect("JSON");
        let text = canonical(&raw);
        prop_assert!(text.bytes().all(|byte| (b' '..=b'~').contains(&byte)));
        prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), &value);
        prop_assert_eq!(&canonical(&text), &text);
    }

    #[test]
    fn floats(value in any::<f64>().prop_filter("finite", |value| value.is_finite())) {
        let mut text = Vec::new();
        write_float(&mut text, value).expect("memory");
        let text = String::from_utf8(text).expect("ASCII");
        prop_assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{}", text);
        prop_assert_eq!(&canonical(&format!("{value:?}")), &text);
    }

    #[test]
    fn floats_as_the_reference_writes_them(value in finite()) {
        let text = written(value);
        prop_assert_eq!(&crate::support::json::parse(&format!("{value:e}")).canonical(), &text);
    }

    #[test]
    fn strings(text in any::<String>()) {
        let mut out = Vec::new();
        write_string(&mut out, &text).expect("memory");
        prop_assert_eq!(serde_json::from_slice::<String>(&out).expect("JSON"), text);
    }

    /// Text that is not JSON never panics.
    #[test]
    fn anything(text in any::<String>()) {
        let _ = canonical(&text);
        let _ = canonical(&format!("[{text}"));
    }
}
