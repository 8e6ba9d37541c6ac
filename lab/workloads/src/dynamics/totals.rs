//! Sums that are conserved except for rounding.

use super::Atmosphere;

/// A sum that compensates rounding errors (Neumaier).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sum {
    sum: f64,
    lost: f64,
}

impl Sum {
    fn add(&mut self, more: f64) {
        let sum = self.sum + more;
        let (large, small) = if self.sum.abs() >= more.abs() { (self.sum, more) } else { (more, self.sum) };
        self.lost += (large - sum) + small;
        self.sum = sum;
    }
}

/// The sums over some columns of density, which is mass, and of density times potential
/// temperature, which is heat.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    mass: Sum,
    heat: Sum,
}

impl Totals {
    /// Adds a column, given as differences.
    pub fn add_column(&mut self, atmosphere: &Atmosphere, density: &[f64], heat: &[f64]) {
        for (total, rest, more) in
            [(&mut self.mass, &atmosphere.density, density), (&mut self.heat, &atmosphere.heat, heat)]
        {
            for value in rest.iter().chain(more) {
                total.add(*value);
            }
        }
    }

    /// Adds the sums of mass and heat of other columns.
    pub fn add(&mut self, [mass, heat]: [f64; 2]) {
        self.mass.add(mass);
        self.heat.add(heat);
    }

    /// Returns the sums of mass and heat.
    pub fn sums(&self) -> [f64; 2] {
        [self.mass, self.heat].map(|total| total.sum + total.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_errors_are_kept() {
        let mut sum = Sum::default();
        [1.0, 1e100, 1.0, -1e100].iter().for_each(|value| sum.add(*value));
        assert_eq!(sum.sum + sum.lost, 2.0);
    }
}
