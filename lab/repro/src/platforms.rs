//! The modelled machines, for display.

use crate::quantity::{count, number};
use tofu2_sim::virt::{Constant, Platform, Unit};

/// Returns every machine of the papers' figures.
pub fn all() -> [Platform; 4] {
    [Platform::fx100(), Platform::fx10(), Platform::k(), Platform::sr8000()]
}

/// Formats a constant in a convenient unit.
pub fn readable(constant: &Constant) -> String {
    let value = constant.value as f64;
    match constant.unit {
        Unit::Picoseconds if constant.value >= 1_000_000 => format!("{} µs", number(value * 1e-6)),
        Unit::Picoseconds => format!("{} ns", number(value * 1e-3)),
        Unit::FemtosecondsPerByte if constant.value > 0 => format!("{} GB/s", number(1e6 / value)),
        Unit::Bytes => format!("{} B", count(constant.value)),
        Unit::Bits => format!("{} bit", constant.value),
        Unit::PerTenThousand => number(value * 1e-4),
        _ => count(constant.value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_the_units_people_use() {
        let fx100 = Platform::fx100();
        let text = |name: &str| fx100.constants().iter().find(|c| c.name == name).map(readable);
        assert_eq!(text("atomic_service").as_deref(), Some("269.5 ns"));
        assert_eq!(text("link_byte").as_deref(), Some("12.5 GB/s"));
        assert_eq!(text("atomic_serial").as_deref(), Some("0.47"));
    }

    #[test]
    fn no_constant_is_set_by_a_figure_that_the_model_predicts() {
        use crate::figures::{self, Status};
        for platform in all() {
            for (constant, from) in platform.constants().iter().flat_map(|c| c.from.iter().map(move |from| (c, from))) {
                // A table row with several cells is called "A1 local" there and `A1-local` here,
                // and "A9" as a whole.
                let id = from.replace(' ', "-");
                let part = format!("{id}-");
                let mut named = figures::all().filter(|f| f.id == id || f.id.starts_with(&part)).peekable();
                assert!(named.peek().is_some(), "{} is set by {from}, which no paper prints", constant.name);
                for figure in named {
                    assert_eq!(figure.status, Status::Calibrated, "{} is set by {from}", constant.name);
                }
            }
        }
    }
}
