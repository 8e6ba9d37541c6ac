//! `cargo xtask install-blacs`, `install-acp` and `install-utofu`: install the libraries of the crates
//! `blacs-c`, `acp-c` and `utofu-c`, their headers and their `pkg-config` file below one directory.

use clap::Args;
use serde_json::Value;
use std::{
    error::Error,
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Directory to install to: DIR/lib, DIR/include, DIR/lib/pkgconfig.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// Build for debugging.
    #[arg(long)]
    debug: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BlacsOptions {
    #[command(flatten)]
    common: Options,
    /// Make Fortran's INTEGER and C's blacs_int 8 bytes long.
    #[arg(long)]
    int64: bool,
}

/// What a package installs.
#[derive(Debug)]
struct Installed {
    package: &'static str,
    /// The name of the library in Cargo's folders, and that under which programs link it.
    built: &'static str,
    name: &'static str,
    description: &'static str,
    /// In the package's `include`.
    headers: &'static [&'static str],
    features: &'static [&'static str],
    /// For programs that include the headers.
    define: &'static str,
}

const BLACS: Installed = Installed {
    package: "blacs-c",
    built: "blacs_fmpl",
    name: "blacs_fmpl",
    description: "BLACS over one-sided communication, without MPI",
    headers: &["blacs_fmpl.h"],
    features: &[],
    define: "",
};

/// Cargo's folders have a library `libacp` already: that of the crate `acp`.
const ACP: Installed = Installed {
    package: "acp-c",
    built: "acp_c",
    name: "acp",
    description: "ACP over shared memory between processes",
    headers: &["acp.h", "acp_middle.h", "acp_containers.h"],
    features: &[],
    define: "",
};

const UTOFU: Installed = Installed {
    package: "utofu-c",
    built: "tofucom",
    name: "tofucom",
    description: "uTofu over shared memory between processes, or in virtual time",
    headers: &["utofu.h"],
    features: &[],
    define: "",
};

/// Installs BLACS.
pub(crate) fn blacs(options: &BlacsOptions) -> Result<ExitCode, Box<dyn Error>> {
    let wide = Installed { features: &["int64"], define: " -DBLACS_INT64", ..BLACS };
    run(if options.int64 { &wide } else { &BLACS }, &options.common)
}

/// Installs ACP.
pub(crate) fn acp(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    run(&ACP, options)
}

/// Installs uTofu.
pub(crate) fn utofu(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    run(&UTOFU, options)
}

fn run(installed: &Installed, options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let built = build(installed, options)?;
    let prefix = std::path::absolute(&options.prefix)?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkg_config = lib.join("pkgconfig");
    for folder in [&lib, &include, &pkg_config] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    for library in &built.libraries {
        let ending = library.extension().ok_or("a library without an ending")?;
        let mut name = OsString::from(format!("lib{}.", installed.name));
        name.push(ending);
        install(library, &lib.join(name))?;
    }
    let headers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bindings").join(installed.package).join("include");
    for header in installed.headers {
        install(&headers.join(header), &include.join(header))?;
    }
    let description = pkg_config.join(format!("{}.pc", installed.name));
    fs::write(&description, pkg_config_file(&prefix, &built.needed, installed))?;
    println!("{}", description.display());
    Ok(ExitCode::SUCCESS)
}

/// Copies a file. An existing file is replaced and not overwritten: it may be in use.
fn install(file: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let _ = fs::remove_file(to);
    fs::copy(file, to).map_err(|error| format!("{}: {error}", to.display()))?;
    println!("{}", to.display());
    Ok(())
}

/// The products of Cargo's build.
#[derive(Debug, Default, PartialEq, Eq)]
struct Built {
    libraries: Vec<PathBuf>,
    /// The linker's options for the dependencies of the static library.
    needed: String,
}

fn build(installed: &Installed, options: &Options) -> Result<Built, Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--quiet", "--package", installed.package, "--lib", "--crate-type", "cdylib,staticlib"]);
    if !options.debug {
        cargo.args(["--release", "--config", "profile.release.lto=\"thin\""]);
        cargo.args(["--config", "profile.release.strip=\"debuginfo\""]);
    }
    for feature in installed.features {
        cargo.args(["--features", feature]);
    }
    cargo.args(["--message-format", "json", "--", "--print", "native-static-libs"]);
    let output = cargo.stdout(Stdio::piped()).stderr(Stdio::inherit()).output()?;
    let built = read(&String::from_utf8(output.stdout)?, installed.built)?;
    if !output.status.success() || built.libraries.is_empty() {
        return Err("the libraries can't be built".into());
    }
    Ok(built)
}

/// Reads Cargo's messages about a library.
fn read(messages: &str, library: &str) -> Result<Built, serde_json::Error> {
    let mut built = Built::default();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        match message["reason"].as_str() {
            Some("compiler-artifact") if message["target"]["name"] == library => {
                let files = message["filenames"].as_array().into_iter().flatten().filter_map(Value::as_str);
                built.libraries = files.map(PathBuf::from).collect();
            }
            Some("compiler-message") => {
                let said = message["message"]["message"].as_str().unwrap_or_default();
                if let Some(needed) = said.strip_prefix("native-static-libs: ") {
                    built.needed = needed.trim().to_owned();
                } else if !said.starts_with("link against the following") {
                    eprint!("{}", message["message"]["rendered"].as_str().unwrap_or(said));
                }
            }
            _ => {}
        }
    }
    Ok(built)
}

fn pkg_config_file(prefix: &Path, needed: &str, installed: &Installed) -> String {
    let (prefix, version) = (prefix.display(), env!("CARGO_PKG_VERSION"));
    let Installed { name, description, define, .. } = installed;
    format!(
        "prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: {name}
Description: {description}
Version: {version}
Cflags: -I${{includedir}}{define}
Libs: -L${{libdir}} -l{name}
Libs.private: {needed}
"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn libraries_and_what_they_need_are_read() {
        let messages = r#"{"reason":"compiler-artifact","target":{"name":"fmpl"},"filenames":["/t/libfmpl.rlib"]}
{"reason":"compiler-message","message":{"message":"native-static-libs: -lgcc_s -lc","rendered":"note: ..."}}
{"reason":"compiler-artifact","target":{"name":"blacs_fmpl"},"filenames":["/t/libblacs_fmpl.so","/t/libblacs_fmpl.a"]}
{"reason":"build-finished","success":true}"#;
        let libraries = ["/t/libblacs_fmpl.so", "/t/libblacs_fmpl.a"].map(PathBuf::from).to_vec();
        let built = read(messages, BLACS.built).expect("JSON");
        assert_eq!(built, Built { libraries, needed: "-lgcc_s -lc".to_owned() });
        let described =
            pkg_config_file(Path::new("/opt/blacs"), &built.needed, &Installed { define: " -DBLACS_INT64", ..BLACS });
        assert!(described.contains("\nLibs.private: -lgcc_s -lc\n") && described.contains(" -DBLACS_INT64\n"));
    }
}
