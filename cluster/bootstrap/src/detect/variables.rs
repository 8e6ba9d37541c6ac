//! Reading groups of environment variables.

use super::DetectError;
use std::{ffi::OsString, str::FromStr};

/// An environment.
#[derive(Clone, Copy)]
pub(super) struct Variables<'a>(pub(super) &'a dyn Fn(&str) -> Option<OsString>);

impl Variables<'_> {
    pub(super) fn has(self, name: &str) -> bool {
        (self.0)(name).is_some()
    }

    /// Returns whether a group of variables is set: if any of its marker variables is set, all
    /// variables of `group` have to be set.
    pub(super) fn whole(self, tell: &[&'static str], group: &[&'static str]) -> Result<bool, DetectError> {
        let Some(present) = tell.iter().find(|name| self.has(name)) else { return Ok(false) };
        match group.iter().find(|name| !self.has(name)) {
            Some(missing) => Err(DetectError::HalfSet { missing, present }),
            None => Ok(true),
        }
    }

    pub(super) fn malformed(self, variable: &'static str, expected: &'static str) -> DetectError {
        let value = (self.0)(variable).unwrap_or_default().to_string_lossy().into_owned();
        DetectError::Malformed { variable, value, expected }
    }

    pub(super) fn text(self, name: &'static str) -> Result<String, DetectError> {
        let value = (self.0)(name).and_then(|value| value.into_string().ok());
        value.filter(|value| !value.is_empty()).ok_or_else(|| self.malformed(name, "a text"))
    }

    pub(super) fn number<T: FromStr>(self, name: &'static str) -> Result<T, DetectError> {
        let text = self.text(name)?;
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text.parse().ok().filter(|_| digits);
        number.ok_or_else(|| self.malformed(name, "a number in its range"))
    }

    /// Parses a rank and the number of ranks.
    pub(super) fn rank_of(self, variable: &'static str, of: &'static str) -> Result<(u32, usize), DetectError> {
        let (rank, ranks): (u32, u32) = (self.number(variable)?, self.number(of)?);
        if rank >= ranks {
            return Err(DetectError::RankOutOfRange { variable, rank, of, ranks: ranks as usize });
        }
        Ok((rank, ranks as usize))
    }
}
