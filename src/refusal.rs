//! The error of a program whose observation is requested, but which was built without that feature.

use crate::settings::setting;
use rdma_fabric::FabricError;
use std::ffi::OsString;

/// The text of the error.
const UNABLE: &str = "this program was built without the feature `observe` of the crate `onesided`";

/// Returns that error, for the option or variable `name`.
pub(crate) fn unable(name: &'static str) -> FabricError {
    setting(name, UNABLE.to_owned())
}

/// Returns an error if `args` or the environment request an observation.
pub(crate) fn refuse_options(
    args: &mut pico_args::Arguments,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Result<(), FabricError> {
    for flag in ["--stats", "--trace", "--timeline"] {
        if args.contains(flag) {
            return Err(unable(flag));
        }
    }
    if variable("ONESIDED_STATS").is_some_and(|value| value != "0") {
        return Err(unable("ONESIDED_STATS"));
    }
    if variable("ONESIDED_TRACE").is_some() {
        return Err(unable("ONESIDED_TRACE"));
    }
    Ok(())
}

/// Returns an error if this process's launcher requests an observation.
pub(crate) fn refuse_launcher(variable: impl Fn(&str) -> Option<OsString>) -> Result<(), FabricError> {
    // `observe::RECORDS_VARIABLE`.
    if variable("ONESIDED_OBSERVE").is_some() { Err(unable("ONESIDED_OBSERVE")) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(words: &[&str], variables: &[(&str, &str)]) -> String {
        let mut args = pico_args::Arguments::from_vec(words.iter().map(OsString::from).collect());
        let variable = |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.into());
        let refused = refuse_options(&mut args, variable).and_then(|()| refuse_launcher(variable));
        refused.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn observing_names_the_missing_feature() {
        for (words, variables, name) in [
            (&["--stats"][..], &[][..], "--stats"),
            (&["--ranks", "2", "--trace", "file"], &[], "--trace"),
            (&["--timeline", "file"], &[], "--timeline"),
            (&[], &[("ONESIDED_STATS", "1")], "ONESIDED_STATS"),
            (&[], &[("ONESIDED_TRACE", "file")], "ONESIDED_TRACE"),
            (&[], &[("ONESIDED_OBSERVE", "stats:/tmp")], "ONESIDED_OBSERVE"),
        ] {
            let message =
                format!("setting {name}: this program was built without the feature `observe` of the crate `onesided`");
            assert_eq!(told(words, variables), message);
        }
        assert_eq!(told(&["--ranks", "2"], &[("ONESIDED_STATS", "0"), ("ONESIDED_RANKS", "2")]), "");
    }

    #[cfg(feature = "observe")]
    #[test]
    fn the_launchers_variable_is_the_one_that_is_looked_at() {
        assert_eq!(
            told(&[], &[(observe::RECORDS_VARIABLE, "stats:/tmp")]).split(':').next(),
            Some("setting ONESIDED_OBSERVE")
        );
    }
}
