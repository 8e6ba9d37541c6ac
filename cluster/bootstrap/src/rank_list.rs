//! Lists of ranks in messages for users.

use std::fmt;

/// The maximum number of ranges that are written out.
const NAMED: usize = 8;

/// Ranks in ascending order: `rank 3`, `ranks 0-2, 5`, `ranks 0, 2, 4, ... (1200)`.
pub(crate) struct RankList<'a>(pub(crate) &'a [u32]);

impl fmt::Display for RankList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            [] => return f.write_str("no rank"),
            [rank] => return write!(f, "rank {rank}"),
            _ => f.write_str("ranks ")?,
        }
        for (index, range) in self.0.chunk_by(|one, next| one.checked_add(1) == Some(*next)).enumerate() {
            if index == NAMED {
                return write!(f, ", ... ({} in all)", self.0.len());
            }
            f.write_str(if index == 0 { "" } else { ", " })?;
            match range {
                [first, .., last] => write!(f, "{first}-{last}")?,
                one => one.iter().try_for_each(|rank| write!(f, "{rank}"))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_short_and_long_lists_end() {
        let odd: Vec<u32> = (0..100).map(|rank| 2 * rank + 1).collect();
        for (ranks, text) in [
            (&[][..], "no rank"),
            (&[7], "rank 7"),
            (&[0, 1, 2, 5], "ranks 0-2, 5"),
            (&[u32::MAX - 1, u32::MAX], "ranks 4294967294-4294967295"),
            (&odd, "ranks 1, 3, 5, 7, 9, 11, 13, 15, ... (100 in all)"),
        ] {
            assert_eq!(RankList(ranks).to_string(), text);
        }
    }
}
