//! The torus that a job's nodes form.

use std::fmt;

/// Sides of a torus. Where a paper gives none, several are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape(&'static [u32]);

impl Shape {
    /// The torus of these sides.
    pub const fn new(sides: &'static [u32]) -> Self {
        Shape(sides)
    }

    /// Number of nodes along each axis.
    pub const fn sides(self) -> &'static [u32] {
        self.0
    }

    /// Number of nodes.
    pub fn nodes(self) -> u32 {
        self.0.iter().product()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, side) in self.0.iter().enumerate() {
            write!(f, "{}{side}", if i == 0 { "" } else { "×" })?;
        }
        Ok(())
    }
}
