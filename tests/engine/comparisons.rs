//! Comparisons with their values in place (LANGUAGE §5): numbers, texts, and values whose kind each
//! node decides.

use pactql::Value;
use pactql::internals::ir::{CompareOp, ExactNumber, Patterns};
use pactql::internals::plan::{NumberSet, Scalar, TextTest, ValueReading, ValueTest};

#[test]
fn numeric_comparisons_are_exact_over_all_integers() {
    let numbers = [
        i64::MIN,
        i64::MIN + 1,
        -3,
        -2,
        0,
        2,
        3,
        i64::MAX - 1,
        i64::MAX,
    ];
    let two_63 = 9_223_372_036_854_775_808.0;
    let decimals = [
        -2.5, -2.0, 2.0, 2.5, 9.3e18, -9.3e18, two_63, -two_63, 1e300,
    ];
    let ops = [
        CompareOp::Eq,
        CompareOp::Ne,
        CompareOp::Lt,
        CompareOp::Le,
        CompareOp::Gt,
        CompareOp::Ge,
    ];
    let holds = |op, order: std::cmp::Ordering| match op {
        CompareOp::Eq => order.is_eq(),
        CompareOp::Ne => order.is_ne(),
        CompareOp::Lt => order.is_lt(),
        CompareOp::Le => order.is_le(),
        CompareOp::Gt => order.is_gt(),
        _ => order.is_ge(),
    };
    for op in ops {
        for left in numbers {
            for right in numbers {
                let set = NumberSet::new(op, &Value::Int(right)).expect("numbers compare");
                assert_eq!(set.contains(Some(left)), holds(op, left.cmp(&right)));
            }
            for right in decimals {
                let set = NumberSet::new(op, &Value::Decimal(right)).expect("numbers compare");
                let order =
                    ExactNumber::Int(i128::from(left)).compare(&ExactNumber::Decimal(right));
                assert_eq!(
                    set.contains(Some(left)),
                    holds(op, order),
                    "{left} {op:?} {right}"
                );
            }
        }
        let null = NumberSet::new(op, &Value::Null).expect("null compares");
        assert_eq!(
            (null.contains(None), null.contains(Some(0))),
            (op == CompareOp::Eq, op == CompareOp::Ne)
        );
        let one = NumberSet::new(op, &Value::Int(1)).expect("numbers compare");
        assert_eq!(one.contains(None), op == CompareOp::Ne);
    }
    assert!(NumberSet::new(CompareOp::Eq, &"1".into()).is_none());
}

#[test]
fn lists_become_intervals() {
    let values = |items: &[i64]| Value::List(items.iter().map(|&item| item.into()).collect());
    let many: Vec<i64> = (0..1_000).rev().collect();
    let set = NumberSet::new(CompareOp::Eq, &values(&many)).expect("numbers compare");
    assert_eq!(set.ranges.ranges(), [(0, 999)]);
    let set = NumberSet::new(CompareOp::Eq, &values(&[7, i64::MAX, 3, i64::MIN, 7, 4]));
    let set = set.expect("numbers compare");
    let kept = [(i64::MIN, i64::MIN), (3, 4), (7, 7), (i64::MAX, i64::MAX)];
    assert_eq!(set.ranges.ranges(), kept);
    for number in [i64::MIN, -1, 2, 3, 4, 5, 7, 8, i64::MAX] {
        let inside = kept
            .iter()
            .any(|&(low, high)| (low..=high).contains(&number));
        assert_eq!(set.contains(Some(number)), inside, "{number}");
    }
}

#[test]
fn lists_contain_any_of_one_and_all_of_several() {
    let mixed = Value::List(
        [
            "b".into(),
            2.into(),
            Value::Null,
            2.5.into(),
            "a".into(),
            2.0.into(),
        ]
        .into(),
    );
    let test = |value: &Value| {
        let value = value.clone();
        ValueTest::new(
            CompareOp::Eq,
            value,
            ValueReading::Any,
            &mut Patterns::new(),
        )
        .expect("valid")
    };
    let Value::List(items) = &mixed else {
        unreachable!("a list")
    };
    let present = items.iter().filter(|item| **item != Value::Null).cloned();
    let (test, of_present) = (test(&mixed), test(&Value::List(present.collect())));
    let text = |text: &'static str| Scalar::Text(text.into());
    let number = Scalar::Number;
    for node in [
        text("a"),
        text("b"),
        number("2.0"),
        number("25e-1"),
        Scalar::Null,
    ] {
        assert!(test.holds(&node), "{node:?}");
    }
    for node in [text("2"), text(""), number("3"), Scalar::Other] {
        assert!(!test.holds(&node), "{node:?}");
    }
    let all = vec![
        number("2.5"),
        text("a"),
        Scalar::Null,
        number("2"),
        text("b"),
    ];
    assert!(of_present.holds(&Scalar::List(all.clone())));
    assert!(!of_present.holds(&Scalar::List(all[1..].to_vec())));
    let twice = [&all[1..], &all[1..]].concat();
    assert!(!of_present.holds(&Scalar::List(twice)));
    // Null is never a member of a list.
    assert!(!test.holds(&Scalar::List(all)));
}

#[test]
fn custom_values_keep_their_type_for_equality_and_order_as_numbers_where_both_read_so() {
    let test = |op, value: Value, node: &Scalar<'_>| {
        ValueTest::new(op, value, ValueReading::Any, &mut Patterns::new())
            .expect("valid")
            .holds(node)
    };
    let text = |text: &'static str| Scalar::Text(text.into());
    assert!(!test(CompareOp::Eq, "10".into(), &Scalar::Number("10")));
    assert!(test(CompareOp::Eq, 10.into(), &Scalar::Number("10.0")));
    assert!(test(CompareOp::Lt, "10".into(), &text("9")));
    assert!(!test(CompareOp::Lt, "10".into(), &text("9a")));
    assert!(test(
        CompareOp::Gt,
        i64::MAX.into(),
        &Scalar::Number("9223372036854775808")
    ));
    let list = Scalar::List(vec![
        text("a"),
        Scalar::Number("2"),
        Scalar::List(vec![text("z")]),
    ]);
    assert!(test(CompareOp::Eq, "a".into(), &list) && test(CompareOp::Eq, 2.into(), &list));
    assert!(!test(CompareOp::Eq, "z".into(), &list) && !test(CompareOp::Lt, "b".into(), &list));
    let both = Value::List(["a".into(), "b".into()].into());
    assert!(!test(CompareOp::Eq, both.clone(), &list) && test(CompareOp::Eq, both, &text("b")));
    assert!(test(CompareOp::Ne, "a".into(), &Scalar::Other));
    assert!(!test(CompareOp::Eq, Value::Null, &Scalar::List(Vec::new())));
}

#[test]
fn texts_compare_by_code_point_and_null_only_by_equality() {
    let test = |op, value: Value| {
        TextTest::new(op, value, |text| text, &mut Patterns::new()).expect("valid")
    };
    assert!(test(CompareOp::Lt, "é".into()).holds(Some("z")));
    assert!(!test(CompareOp::Lt, "a".into()).holds(None));
    assert!(test(CompareOp::Ne, "a".into()).holds(None));
    assert!(
        test(CompareOp::Eq, Value::Null).holds(None)
            && !test(CompareOp::Eq, Value::Null).holds(Some(""))
    );
    assert!(test(CompareOp::Eq, 5.into()).holds(Some("5")));
    assert!(!test(CompareOp::Ge, Value::Null).holds(Some("a")));
    assert!(test(CompareOp::Matches, "^a.c$".into()).holds(Some("abc")));
}
