//! The library's settings: environment variables.

use std::env;

/// `1`: reports uses that the real machine leaves undefined.
const STRICT: &str = "ONESIDED_UTOFU_STRICT";
/// Slots of the transmit order queues of VCQs.
const TOQ: &str = "ONESIDED_UTOFU_TOQ";
/// Entries of the message receive queues of VCQs.
const MRQ: &str = "ONESIDED_UTOFU_MRQ";

/// Slots of a transmit order queue that the library of the machine keeps for itself.
pub(crate) const KEPT_SLOTS: u64 = 37;

/// The settings of a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) strict: bool,
    /// A power of two from 64 to 65,536.
    pub(crate) toq: u32,
    /// A power of two from 64 to 65,536.
    pub(crate) mrq: u32,
}

impl Settings {
    /// Reads the settings.
    ///
    /// # Errors
    /// A text that names the variable and the values allowed.
    pub(crate) fn read() -> Result<Self, String> {
        Self::of(&|name| env::var(name).ok())
    }

    fn of(env: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let depth = |name: &str, default: u32| {
            let Some(text) = env(name) else { return Ok(default) };
            let number = text.parse().ok().filter(|number: &u32| number.is_power_of_two());
            let wrong = || format!("{name} is `{text}`, which is not a power of two from 64 to 65536");
            number.filter(|number| (64..=65_536).contains(number)).ok_or_else(wrong)
        };
        let strict = match env(STRICT).as_deref() {
            None | Some("" | "0") => false,
            Some("1") => true,
            Some(other) => return Err(format!("{STRICT} is `{other}`, which is neither 0 nor 1")),
        };
        Ok(Settings { strict, toq: depth(TOQ, 2048)?, mrq: depth(MRQ, 8192)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_values_are_named() {
        let with = |name: &str, value: &str| {
            Settings::of(&|asked| (asked == name).then(|| value.to_owned())).map(|settings| settings.toq)
        };
        assert_eq!(with(TOQ, "4096"), Ok(4096));
        for (name, value) in [(TOQ, "100"), (MRQ, "32"), (STRICT, "yes")] {
            assert!(with(name, value).unwrap_err().contains(name), "{name}={value}");
        }
    }
}
