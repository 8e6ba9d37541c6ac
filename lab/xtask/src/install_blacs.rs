//! `cargo xtask install-blacs`: installs the libraries of the crate `blacs-c`, their header and
//! their `pkg-config` file below one directory.

use clap::Args;
use serde_json::Value;
use std::{
    error::Error,
    fs,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Directory to install to: DIR/lib, DIR/include, DIR/lib/pkgconfig.
    #[arg(long, value_name = "DIR")]
    prefix: PathBuf,
    /// Make Fortran's INTEGER and C's blacs_int 8 bytes long.
    #[arg(long)]
    int64: bool,
    /// Build for debugging.
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let built = build(options)?;
    let prefix = std::path::absolute(&options.prefix)?;
    let (lib, include) = (prefix.join("lib"), prefix.join("include"));
    let pkg_config = lib.join("pkgconfig");
    for folder in [&lib, &include, &pkg_config] {
        fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    for library in &built.libraries {
        install(library, &lib)?;
    }
    install(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../blacs-c/include/blacs_fmpl.h"), &include)?;
    let description = pkg_config.join("blacs_fmpl.pc");
    fs::write(&description, pkg_config_file(&prefix, &built.needed, options.int64))?;
    println!("{}", description.display());
    Ok(ExitCode::SUCCESS)
}

/// Copies a file. An existing file is replaced and not overwritten: it may be in use.
fn install(file: &Path, folder: &Path) -> Result<(), Box<dyn Error>> {
    let to = folder.join(file.file_name().ok_or("a library without a name")?);
    let _ = fs::remove_file(&to);
    fs::copy(file, &to).map_err(|error| format!("{}: {error}", to.display()))?;
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

fn build(options: &Options) -> Result<Built, Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["rustc", "--quiet", "--package", "blacs-c", "--lib", "--crate-type", "cdylib,staticlib"]);
    if !options.debug {
        cargo.args(["--release", "--config", "profile.release.lto=\"thin\""]);
        cargo.args(["--config", "profile.release.strip=\"debuginfo\""]);
    }
    if options.int64 {
        cargo.args(["--features", "int64"]);
    }
    cargo.args(["--message-format", "json", "--", "--print", "native-static-libs"]);
    let output = cargo.stdout(Stdio::piped()).stderr(Stdio::inherit()).output()?;
    let built = read(&String::from_utf8(output.stdout)?)?;
    if !output.status.success() || built.libraries.is_empty() {
        return Err("the libraries can't be built".into());
    }
    Ok(built)
}

/// Reads Cargo's messages.
fn read(messages: &str) -> Result<Built, serde_json::Error> {
    let mut built = Built::default();
    for line in messages.lines() {
        let message: Value = serde_json::from_str(line)?;
        match message["reason"].as_str() {
            Some("compiler-artifact") if message["target"]["name"] == "blacs_fmpl" => {
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

fn pkg_config_file(prefix: &Path, needed: &str, int64: bool) -> String {
    let (prefix, version) = (prefix.display(), env!("CARGO_PKG_VERSION"));
    let define = if int64 { " -DBLACS_INT64" } else { "" };
    format!(
        "prefix={prefix}
libdir=${{prefix}}/lib
includedir=${{prefix}}/include

Name: blacs_fmpl
Description: BLACS over one-sided communication, without MPI
Version: {version}
Cflags: -I${{includedir}}{define}
Libs: -L${{libdir}} -lblacs_fmpl
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
        let built = read(messages).expect("JSON");
        assert_eq!(built, Built { libraries, needed: "-lgcc_s -lc".to_owned() });
        let described = pkg_config_file(Path::new("/opt/blacs"), &built.needed, true);
        assert!(described.contains("\nLibs.private: -lgcc_s -lc\n") && described.contains(" -DBLACS_INT64\n"));
    }
}
