//! The compiler's messages for common mistakes.

#![cfg(not(miri))]

use std::{
    env,
    io::Write,
    process::{Command, Stdio},
    sync::OnceLock,
};

/// The crate's metadata, and the directory with its dependencies'.
fn library() -> &'static (String, String) {
    static LIBRARY: OnceLock<(String, String)> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let cargo = env::var_os("CARGO").expect("run by cargo");
        let mut check = Command::new(cargo);
        check.args(["check", "--offline", "--package", "rdma-fabric", "--lib", "--message-format", "json"]);
        let out = check.stderr(Stdio::inherit()).output().expect("cargo runs");
        let text = String::from_utf8(out.stdout).expect("JSON is UTF-8");
        let path = text.split('"').find(|word| word.contains("librdma_fabric-") && word.ends_with(".rmeta"));
        let path = path.expect("its metadata has a path").to_owned();
        let (dependencies, _) = path.rsplit_once(['/', '\\']).expect("a file in a directory");
        (path.clone(), dependencies.to_owned())
    })
}

/// Returns the compiler's messages for these items.
fn said(items: &str) -> (bool, String) {
    let (library, dependencies) = library();
    let mut rustc = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into()));
    rustc.args(["--edition", "2024", "--crate-type", "lib", "--crate-name", "mistake", "--emit", "metadata"]);
    rustc.args(["--out-dir", env!("CARGO_TARGET_TMPDIR"), "-A", "warnings", "--color", "never"]);
    rustc.args(["--extern", &format!("rdma_fabric={library}"), "-L", &format!("dependency={dependencies}"), "-"]);
    let mut running = rustc.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("rustc runs");
    let source = format!("use rdma_fabric::*;\n{items}\n");
    running.stdin.take().expect("a pipe").write_all(source.as_bytes()).expect("rustc reads");
    let out = running.wait_with_output().expect("rustc ends");
    (out.status.success(), String::from_utf8_lossy(&out.stderr).into_owned())
}

/// Checks that the items don't compile, and that the messages contain each of these.
#[track_caller]
fn refused(items: &str, why: &[&str]) {
    let (compiles, text) = said(items);
    assert!(!compiles, "this compiles: {items}");
    for why in why {
        assert!(text.contains(why), "nothing about {why:?}:\n{text}");
    }
}

/// A word's width is never inferred from an untyped literal.
#[test]
fn words_have_a_width_that_somebody_named() {
    let why = ["`i32` is not a word", "a word is a `u32` or a `u64`", "`remote_word::<u64>(…)`", "`1u64`"];
    for call in [
        "fabric.put_word(&fabric.remote_word(flag)?, 1).await",
        "fabric.fetch_add(&fabric.remote_word(flag)?, 1).await.map(drop)",
        "fabric.store(&fabric.local_word(flag)?, 1)",
    ] {
        let items = |call: &str| format!("async fn f(fabric: Fabric, flag: RemoteAddr) -> Result<()> {{ {call} }}");
        refused(&items(call), &why);
        let named = call.replace("_word(flag)", "_word::<u64>(flag)");
        assert!(said(&items(&named)).0, "named: {}", said(&items(&named)).1);
    }
}

#[test]
fn sources_and_sinks_are_owned() {
    let items = |call: &str| {
        format!(
            "async fn f(fabric: Fabric, span: RemoteSpan<u64>, mut all: Vec<u64>) -> Result<()> {{ {call}.map(drop) }}"
        )
    };
    let why = ["can't be the source of a put of `u64`", "`slice.to_vec()`", "`LocalSpan`"];
    for source in ["&all", "&all[..]", "&mut all[1..]", "all[0]", "vec![1u32]"] {
        refused(&items(&format!("fabric.put(&span, {source}).await")), &why);
    }
    refused(&items("fabric.try_post(op::Put { to: &span, from: &all, notice: None }).map_err(drop); Ok(())"), &why);
    let why = ["can't be where a get of `u64` arrives", "`vec![…; n]`"];
    refused(&items("fabric.get(&span, &mut all).await"), &why);
    for call in ["fabric.put(&span, all).await", "fabric.put(&span, [1]).await", "fabric.get(&span, vec![0; 3]).await"]
    {
        assert!(said(&items(call)).0, "{call}: {}", said(&items(call)).1);
    }
}

#[test]
fn what_is_no_program_is_told_so() {
    const LAUNCH: &str = "fn launch<P: Program>(_: P) {}";
    for items in [
        "async fn count(fabric: Fabric) -> ProgramResult<usize> { Ok(fabric.ranks()) } fn f() { launch(count) }",
        "fn f() { let by = 3; launch(async |fabric: Fabric| Ok(fabric.ranks() * by)) }",
    ] {
        let (compiles, text) = said(&format!("{LAUNCH} {items}"));
        assert!(compiles, "{items}: {text}");
    }
    let why = ["is not a program that ranks can run", "`async fn name(fabric: Fabric) -> ProgramResult<()>"];
    refused(&format!("{LAUNCH} fn f() {{ launch(3) }}"), &why);
    refused(&format!("{LAUNCH} fn count(fabric: Fabric) -> usize {{ 3 }} fn f() {{ launch(count) }}"), &[]);
}

#[test]
fn bounds_that_are_missing_are_named() {
    refused(
        "fn f(fabric: Fabric, word: RemoteWord<u64>) { let _ = fabric.try_post(Amo::Add(1u64)); }",
        &["Amo<u64>` is not an operation that can be posted", "`op::Atomic`"],
    );
}
