//! Sums of `f64` that do not depend on the order: a wide integer with one exponent for all.
//!
//! Tofu's BFPSUM converts to a block floating format and adds integers; here the integer is so wide that nothing is ever
//! lost (Kulisch's accumulator). Its unit is the smallest subnormal, 2⁻¹⁰⁷⁴; the largest finite `f64` is below 2²⁰⁹⁸ units. With
//! a sign that leaves 77 bits for carries in the 2176 bits of 34 words: more addends than a job can have ranks.
//!
//! * Adding is exact, so any order and any tree give the same bits.
//! * Rounding is done once, at the end, to nearest, ties to even. A sum beyond the largest `f64` is then infinite, as IEEE 754
//!   rounds it; on the way nothing can overflow.
//! * Any NaN, or infinities of both signs, make the sum the NaN `0x7ff8_0000_0000_0000`; infinities of one sign make it that infinity.
//! * A sum of negative zeros only is −0; every other sum that is zero is +0.

/// Words of the integer.
const LIMBS: usize = 34;

const NAN: u64 = 1;
const PLUS_INFINITY: u64 = 2;
const MINUS_INFINITY: u64 = 4;
/// Some addend was not −0.
const ORDINARY: u64 = 8;

/// An exact sum of any number of `f64` (at most 2⁷⁷).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ExactSum {
    /// Two's complement, least significant word first, in units of 2⁻¹⁰⁷⁴.
    limbs: [u64; LIMBS],
    flags: u64,
}

impl ExactSum {
    /// Words of [`ExactSum::words`].
    pub const WORDS: usize = LIMBS + 1;

    /// The sum of one addend.
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

    /// Add what another has summed.
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

    /// The sum, rounded to nearest, ties to even.
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
        // The mantissa's leading bit adds one to the exponent; a mantissa that was rounded up to the next power adds two.
        let bits = (shift as u64).saturating_mul(1 << 52).saturating_add(mantissa).min(0x7ff << 52);
        f64::from_bits(bits | u64::from(negative) << 63)
    }

    /// The sum as plain words.
    pub fn words(&self) -> [u64; Self::WORDS] {
        let mut words = [0; Self::WORDS];
        words[..LIMBS].copy_from_slice(&self.limbs);
        words[LIMBS] = self.flags;
        words
    }

    /// The inverse of [`ExactSum::words`]; `None` for words that no sum has.
    pub fn from_words(words: &[u64; Self::WORDS]) -> Option<Self> {
        let (limbs, flags) = (words[..LIMBS].try_into().ok()?, words[LIMBS]);
        (flags < 16).then_some(ExactSum { limbs, flags })
    }
}

#[cfg(test)]
mod tests;
