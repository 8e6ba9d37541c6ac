//! Generates the bindings to the libfabric of this machine; does nothing without the feature `ofi`.

#[cfg(feature = "ofi")]
mod ofi {
    use std::{env, error::Error, path::PathBuf};

    /// The oldest libfabric whose headers have all required items.
    const OLDEST: &str = "1.17";
    /// The headers to bind, from the directory `rdma`.
    const HEADERS: [&str; 9] = [
        "fabric.h",
        "fi_domain.h",
        "fi_endpoint.h",
        "fi_cm.h",
        "fi_rma.h",
        "fi_atomic.h",
        "fi_eq.h",
        "fi_errno.h",
        "fi_ext.h",
    ];

    /// Names a field that has the same name in C in all versions, but is in an anonymous union since
    /// 2.0, which the bindings give a name.
    const ACCESSORS: &str = "static inline void fi_set_data_progress(struct fi_domain_attr *attr, enum fi_progress \
                             progress) { attr->data_progress = progress; }\n";

    pub(crate) fn bind() -> Result<(), Box<dyn Error>> {
        let library = pkg_config::Config::new().atleast_version(OLDEST).probe("libfabric").map_err(|error| {
            format!(
                "the feature `ofi` needs libfabric {OLDEST} or later with its headers, and pkg-config to find it: \
                 install `libfabric-dev`, `libclang-dev`, `pkg-config` and `gcc` (Debian, Ubuntu), or \
                 `libfabric-devel`, `clang-devel`, `pkgconf` and `gcc` (Fedora), or let PKG_CONFIG_PATH name the \
                 directory of libfabric.pc\n{error}"
            )
        })?;
        let out = PathBuf::from(env::var("OUT_DIR")?);
        let inline = out.join("inline.c");
        let included: String = HEADERS.iter().map(|header| format!("#include <rdma/{header}>\n")).collect();
        let contents = included + ACCESSORS;
        let bindings = bindgen::Builder::default()
            .header_contents("libfabric.h", &contents)
            .clang_args(library.include_paths.iter().map(|path| format!("-I{}", path.display())))
            .allowlist_item("fi_.*|fid_.*|FI_.*")
            // Includes types of the system's headers only if these items need them.
            .allowlist_recursively(true)
            .prepend_enum_name(false)
            .generate_comments(false)
            .layout_tests(false)
            .rust_edition(bindgen::RustEdition::Edition2024)
            .rust_target("1.88".parse().map_err(|_| "bindgen does not know Rust 1.88")?)
            .wrap_static_fns(true)
            .wrap_static_fns_path(&inline)
            .generate()
            .map_err(|error| format!("libfabric's headers were found, and could not be bound: {error}"))?;
        bindings.write_to_file(out.join("bindings.rs"))?;

        // The generated wrappers include no headers, so these are included before them.
        let headers = out.join("libfabric.h");
        std::fs::write(&headers, contents)?;
        cc::Build::new()
            .file(&inline)
            .includes(&library.include_paths)
            .flag("-include")
            .flag(headers.to_str().ok_or("OUT_DIR is no UTF-8")?)
            .warnings(false)
            .flag_if_supported("-Wno-deprecated-declarations")
            .try_compile("fabric_ofi_inline")?;
        Ok(())
    }
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    #[cfg(feature = "ofi")]
    if let Err(error) = ofi::bind() {
        println!("cargo::error={}", error.to_string().replace('\n', "\ncargo::error="));
    }
}
