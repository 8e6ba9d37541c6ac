//! Building the examples with libfabric.

use std::{
    error::Error,
    path::PathBuf,
    process::{Command, Stdio},
};

/// Returns the reason why nothing can be built over libfabric here, if so.
pub(crate) fn missing() -> Option<&'static str> {
    let mut pkg_config = Command::new("pkg-config");
    pkg_config.args(["--atleast-version=1.17", "libfabric"]).stderr(Stdio::null());
    let found = pkg_config.status().is_ok_and(|status| status.success());
    (!found).then_some("there is no libfabric 1.17 or later, or no pkg-config that knows it")
}

/// Builds these examples; returns the folder where they are.
pub(crate) fn examples(names: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    folder(built("onesided-examples", "onesided/ofi", "--example", names, &[])?)
}

/// Builds examples of a package with a feature, for a release; returns the folder where they are.
pub(crate) fn for_release(package: &str, feature: &str, names: &[&str]) -> Result<PathBuf, Box<dyn Error>> {
    folder(built(package, feature, "--example", names, &["--release"])?)
}

fn folder(programs: Vec<PathBuf>) -> Result<PathBuf, Box<dyn Error>> {
    let folder = programs.first().and_then(|program| program.parent());
    Ok(folder.ok_or("cargo does not say where it has built the examples")?.to_owned())
}

/// Builds targets of a kind (`--example`, `--test`) of a package with a feature; returns the programs.
pub(crate) fn built(
    package: &str,
    feature: &str,
    kind: &str,
    names: &[&str],
    options: &[&str],
) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--package", package, "--features", feature]).args(options);
    cargo.args(names.iter().flat_map(|name| [kind, name]));
    cargo.args(["--message-format", "json-render-diagnostics"]);
    let output = cargo.stderr(Stdio::inherit()).output().map_err(|error| format!("cargo: {error}"))?;
    if !output.status.success() {
        return Err(format!("{} can't be built", names.join(", ")).into());
    }
    let mut programs = Vec::new();
    for line in output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let message: serde_json::Value = serde_json::from_slice(line)?;
        let is_one = message["target"]["name"].as_str().is_some_and(|name| names.contains(&name));
        programs.extend(message["executable"].as_str().filter(|_| is_one).map(PathBuf::from));
    }
    Ok(programs)
}
