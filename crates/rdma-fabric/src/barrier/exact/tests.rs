//! The sum against arbitrary-precision integers, in any order and any tree.

use super::*;
use num_bigint::{BigInt, Sign};
use proptest::prelude::*;

/// Any bits at all, and neighbourhoods where rounding and cancellation happen.
fn addend() -> impl Strategy<Value = f64> {
    let finite = any::<u64>().prop_map(f64::from_bits).prop_filter("finite", |x| x.is_finite());
    let subnormal = (any::<bool>(), 0u64..1 << 52).prop_map(|(s, f)| f64::from_bits(u64::from(s) << 63 | f));
    let near = (-4i32..4, any::<bool>(), 0u64..4).prop_map(|(e, s, f)| {
        let magnitude = f64::from_bits(((1023 + e) as u64) << 52 | f);
        if s { -magnitude } else { magnitude }
    });
    let huge = (any::<bool>(), 0u64..8)
        .prop_map(|(s, f)| f64::from_bits((u64::from(s) << 63) | ((0x7fe << 52 | ((1 << 52) - 1)) - f)));
    let halves = (0u32..60).prop_map(|e| 2f64.powi(-(e as i32)));
    prop_oneof![3 => finite, 1 => subnormal, 3 => near, 1 => huge, 2 => halves, 1 => Just(-0.0), 1 => Just(0.0)]
}

/// In units of 2⁻¹⁰⁷⁴.
fn integer(x: f64) -> BigInt {
    let bits = x.to_bits();
    let (exponent, fraction) = (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
    let mantissa = BigInt::from(if exponent == 0 { fraction } else { fraction | 1 << 52 });
    let magnitude = mantissa << exponent.saturating_sub(1);
    if x.is_sign_negative() { -magnitude } else { magnitude }
}

/// The nearest `f64`, by search: no arithmetic in common with what is tested.
fn nearest(sum: &BigInt) -> f64 {
    let negative = sum.sign() == Sign::Minus;
    let magnitude = if negative { -sum.clone() } else { sum.clone() };
    let (mut low, mut high) = (0u64, 0x7ff << 52);
    // `low` is not above the sum, `high` is; infinity stands for 2^1024.
    let value =
        |bits: u64| if bits == 0x7ff << 52 { BigInt::from(1) << 2098u32 } else { integer(f64::from_bits(bits)) };
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if value(middle) <= magnitude { low = middle } else { high = middle }
    }
    let (below, above) = (magnitude.clone() - value(low), value(high) - magnitude);
    let up = above < below || above == below && low % 2 == 1;
    f64::from_bits(if up { high } else { low } | u64::from(negative) << 63)
}

/// Sum by a tree that `shape` draws: take two sums away, put their sum back.
fn by_tree(addends: &[f64], shape: &[u32]) -> ExactSum {
    let mut sums: Vec<ExactSum> = addends.iter().map(|x| ExactSum::new(*x)).collect();
    let mut draw = shape.iter().cycle();
    while sums.len() > 1 {
        let mut take = || sums.swap_remove(*draw.next().unwrap_or(&0) as usize % sums.len());
        let (mut a, b) = (take(), take());
        a.add(&b);
        sums.push(a);
    }
    sums.pop().unwrap()
}

proptest! {
    #[test]
    fn any_tree_gives_the_exact_sum(addends in prop::collection::vec(addend(), 1..40), shape in prop::collection::vec(any::<u32>(), 1..50), other in prop::collection::vec(any::<u32>(), 1..50)) {
        let (one, two) = (by_tree(&addends, &shape), by_tree(&addends, &other));
        prop_assert_eq!(&one, &two);
        let exact: BigInt = addends.iter().map(|x| integer(*x)).sum();
        let (have, want) = (one.round(), nearest(&exact));
        prop_assert!(have == want, "{:e}, not {:e}", have, want);
        if want != 0.0 {
            prop_assert_eq!(have.to_bits(), want.to_bits());
        } else {
            let only_negative_zeros = addends.iter().all(|x| x.to_bits() == 1 << 63);
            prop_assert_eq!(have.is_sign_negative(), only_negative_zeros);
        }
        prop_assert_eq!(ExactSum::from_words(&one.words()), Some(one));
    }
}

fn sum(addends: &[f64]) -> f64 {
    by_tree(addends, &[0]).round()
}

#[test]
fn edges() {
    assert_eq!(sum(&[1e308, 1e308, -1e308, -1e308, 3.5]), 3.5);
    assert_eq!(sum(&[f64::MAX, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[f64::MAX, f64::MAX / 2f64.powi(54)]), f64::MAX);
    assert_eq!(sum(&[-f64::MAX, -f64::MAX / 2f64.powi(53)]), f64::NEG_INFINITY);
    assert_eq!(sum(&[f64::from_bits(1), f64::from_bits(1)]).to_bits(), 2);
    assert_eq!(sum(&[f64::MIN_POSITIVE, -f64::from_bits(1)]).to_bits(), (1 << 52) - 1);
    // Ties to even, and what lies far below decides.
    let half = 2f64.powi(-53);
    assert_eq!(sum(&[1.0, half]), 1.0);
    assert_eq!(sum(&[1.0, half, f64::from_bits(1)]), 1.0 + 2.0 * half);
    assert_eq!(sum(&[1.0 + 2.0 * half, half]), 1.0 + 4.0 * half);
    assert_eq!(sum(&[2.0 - 2.0 * half, half]), 2.0);
    assert_eq!(sum(&[f64::INFINITY, -1.0, f64::MAX]), f64::INFINITY);
    assert_eq!(sum(&[f64::INFINITY, f64::NEG_INFINITY]).to_bits(), 0x7ff8 << 48);
    assert_eq!(sum(&[f64::from_bits(0xfff0_0000_0000_0001), f64::INFINITY]).to_bits(), 0x7ff8 << 48);
    assert!(sum(&[-0.0, -0.0]).is_sign_negative() && sum(&[-0.0, 0.0]).is_sign_positive());
    assert!(sum(&[1.0, -1.0]).is_sign_positive());
}

#[test]
fn many_addends_do_not_overflow() {
    // Doubling 76 times: as 2⁷⁶ members would.
    let mut sum = ExactSum::new(f64::MAX);
    for _ in 0..76 {
        let same = sum.clone();
        sum.add(&same);
    }
    assert_eq!(sum.round(), f64::INFINITY);
    let mut back = sum.clone();
    back.negate();
    back.flags = 0;
    sum.add(&back);
    assert_eq!(sum.round(), 0.0);
}

#[test]
fn a_float_tree_would_not_do() {
    // What the property is worth: the same addends in two orders, added as f64.
    let addends = [1e16, 1.0, -1e16, 1.0];
    let plain: f64 = addends.iter().sum();
    let sorted: f64 = [1e16, -1e16, 1.0, 1.0].iter().sum();
    assert_ne!(plain, sorted);
    assert_eq!(sum(&addends), 2.0);
}
