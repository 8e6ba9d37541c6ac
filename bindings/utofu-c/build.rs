//! Sets the soname of the shared library, under which programs load it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let elf = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|system| ["linux", "freebsd"].contains(&&*system));
    if elf {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libtofucom.so");
    }
}
