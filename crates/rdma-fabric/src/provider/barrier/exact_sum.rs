//! Sums of `f64` that do not depend on the order: a wide integer with one exponent for all addends.
//!
//! Tofu's BFPSUM converts to a block floating format and adds integers; here the integer is so wide
//! that no bits are ever lost (Kulisch accumulator). Its unit is the smallest subnormal, 2⁻¹⁰⁷⁴;
//! the largest finite `f64` is below 2²⁰⁹⁸ units. With a sign, that leaves 77 bits for carries in
//! the 2176 bits of 34 words: room for more addends than a job can have ranks.
//!
//! * Addition is exact, so any order and any tree yield the same bits.
//! * Rounding is done once, at the end, to nearest, ties to even. A sum beyond the largest `f64` is
//!   then infinite, as in IEEE 754 rounding; intermediate results cannot overflow.
//! * Any NaN, or infinities of both signs, make the sum the NaN `0x7ff8_0000_0000_0000`; infinities
//!   of one sign make it that infinity.
//! * A sum of only negative zeros is −0; every other sum that is zero is +0.

/// Words of the integer.
const LIMBS: usize = 34;

const NAN: u64 = 1;
const PLUS_INFINITY: u64 = 2;
const MINUS_INFINITY: u64 = 4;
/// Set if some addend was not −0.
const ORDINARY: u64 = 8;

/// An exact sum of any number of `f64` (at most 2⁷⁷).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactSum {
    /// Two's complement, least significant word first, in units of 2⁻¹⁰⁷⁴.
    limbs: [u64; LIMBS],
    flags: u64,
}

impl ExactSum {
    /// The number of words of [`ExactSum::words`].
    pub const WORDS: usize = LIMBS + 1;

    /// Creates the sum of one addend.
    pub fn new(addend: f64) -> Self {
        let bits = addend.to_bits();
        let (negative, exponent, fraction) = (bits >> 63 == 1, bits >> 52 & 0x7ff, bits & ((1 << 52) - 1));
        let mut sum = ExactSum { limbs: [0; LIMBS], flags: if bits == 1 << 63 { 0 } else { ORDINARY } };
        if exponent == 0x7ff {
            sum.flags |= match (fraction, negative) {
                (0, false) => PLUS_INFINITY,
                (0, true) => MINUS_INFINITY,
                _ => NAN,
            };
            return sum;
        }
        let mantissa = if exponent == 0 { fraction } else { fraction | 1 << 52 };
        let shift = exponent.max(1) as usize - 1;
        let wide = u128::from(mantissa) << (shift % 64);
        sum.limbs[shift / 64] = wide as u64;
        sum.limbs[shift / 64 + 1] = (wide >> 64) as u64;
        if negative {
            sum.negate();
        }
        sum
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &ExactSum) {
        let mut carry = false;
        for (limb, more) in self.limbs.iter_mut().zip(&other.limbs) {
            let (sum, a) = limb.overflowing_add(*more);
            let (sum, b) = sum.overflowing_add(u64::from(carry));
            (*limb, carry) = (sum, a | b);
        }
        self.flags |= other.flags;
    }

    fn negate(&mut self) {
        let mut carry = true;
        for limb in &mut self.limbs {
            (*limb, carry) = (!*limb).overflowing_add(u64::from(carry));
        }
    }

    /// Returns the sum, rounded to nearest, ties to even.
    pub fn round(&self) -> f64 {
        match self.flags & (NAN | PLUS_INFINITY | MINUS_INFINITY) {
            0 => {}
            PLUS_INFINITY => return f64::INFINITY,
            MINUS_INFINITY => return f64::NEG_INFINITY,
            _ => return f64::from_bits(0x7ff8 << 48),
        }
        let negative = self.limbs[LIMBS - 1] >> 63 == 1;
        let mut magnitude = self.clone();
        if negative {
            magnitude.negate();
        }
        let limbs = &magnitude.limbs;
        let Some(top) = limbs.iter().rposition(|limb| *limb != 0) else {
            return if self.flags & ORDINARY == 0 { -0.0 } else { 0.0 };
        };
        let highest = 64 * top + 63 - limbs[top].leading_zeros() as usize;
        let shift = highest.saturating_sub(52);
        let (at, by) = (shift / 64, shift % 64);
        let above = if by == 0 { 0 } else { limbs.get(at + 1).map_or(0, |limb| limb << (64 - by)) };
        let mut mantissa = limbs[at] >> by | above;
        if shift > 0 {
            let half_at = shift - 1;
            let half = limbs[half_at / 64] >> (half_at % 64) & 1 == 1;
            let below = limbs[..half_at / 64].iter().any(|limb| *limb != 0)
                || limbs[half_at / 64] & ((1 << (half_at % 64)) - 1) != 0;
            mantissa += u64::from(half && (below || mantissa & 1 == 1));
        }
        // The mantissa's leading bit adds one to the exponent; a mantissa that was rounded up to
        // the next power adds two.
        let bits = (shift as u64).saturating_mul(1 << 52).saturating_add(mantissa).min(0x7ff << 52);
        f64::from_bits(bits | u64::from(negative) << 63)
    }

    /// Returns the sum as plain words.
    pub fn words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..LIMBS].copy_from_slice(&self.limbs);
        words[LIMBS] = self.flags;
        words
    }

    /// Restores the sum from [`ExactSum::words`]; `None` for words that do not encode a sum.
    pub fn from_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        let (limbs, flags) = (words[..LIMBS].try_into().ok()?, words[LIMBS]);
        (flags < 16).then_some(ExactSum { limbs, flags })
    }
}

/// The sum compared with arbitrary-precision integers, in any order and any tree.
#[cfg(test)]
mod tests {
    use super::*;
    use num_bigint::{BigInt, Sign};
    use proptest::prelude::*;

    /// Arbitrary bits, and ranges in which rounding and cancellation occur.
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

    /// Returns the nearest `f64`, found by search, which shares no arithmetic with the code under
    /// test.
    fn nearest(sum: &BigInt) -> f64 {
        let negative = sum.sign() == Sign::Minus;
        let magnitude = if negative { -sum.clone() } else { sum.clone() };
        let (mut low, mut high) = (0u64, 0x7ff << 52);
        // `low` is not above the sum, `high` is; infinity represents 2^1024.
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

    /// Sums along a tree given by `shape`, which repeatedly replaces two sums with their sum.
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
        // Ties round to even, and much smaller addends break ties.
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
        // For comparison, plain f64 addition of the same addends depends on the order.
        let addends = [1e16, 1.0, -1e16, 1.0];
        let plain: f64 = addends.iter().sum();
        let sorted: f64 = [1e16, -1e16, 1.0, 1.0].iter().sum();
        assert_ne!(plain, sorted);
        assert_eq!(sum(&addends), 2.0);
    }
}
