//! Options of the command line, and the environment variables that stand in for them.

use rdma_fabric::FabricError;
use std::{env, fmt::Display, str::FromStr};

pub(crate) fn setting(name: &'static str, problem: String) -> FabricError {
    FabricError::setting(name, problem)
}

/// What is wrong with a setting without a value. Most likely a script's own variable was empty.
pub(crate) const EMPTY: &str = "it is empty; give it a value or leave it away";

/// An option's value, or else that of its environment variable.
pub(crate) fn option<T: FromStr<Err: Display>>(
    args: &mut pico_args::Arguments,
    flag: &'static str,
    variable: Option<&'static str>,
) -> Result<Option<T>, FabricError> {
    let given = args.opt_value_from_str::<_, String>(flag).map_err(|e| setting(flag, e.to_string()))?;
    let (name, text) = match (given, variable) {
        (Some(text), _) => (flag, text),
        (None, Some(variable)) => match env::var(variable) {
            Ok(text) => (variable, text),
            Err(env::VarError::NotPresent) => return Ok(None),
            Err(error) => return Err(setting(variable, error.to_string())),
        },
        (None, None) => return Ok(None),
    };
    if text.is_empty() {
        return Err(setting(name, EMPTY.to_owned()));
    }
    text.parse().map(Some).map_err(|error: T::Err| setting(name, format!("`{text}`: {error}")))
}
