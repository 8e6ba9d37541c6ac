//! The inputs of fuzz targets, replayed by ordinary tests.

use std::{fs, path::Path};

/// The folder of the inputs, one folder per target, from the root of the workspace.
const SEEDS: &str = "fuzz/seeds";

/// Calls `run` with each input of a fuzz target. `package` is a folder inside the workspace,
/// `env!("CARGO_MANIFEST_DIR")` of the caller; a published package, outside of it, has no inputs.
///
/// # Panics
/// If the workspace has no input for the target, or one cannot be read.
pub fn replay(package: &str, target: &str, mut run: impl FnMut(&[u8])) {
    let Some(seeds) = Path::new(package).ancestors().map(|folder| folder.join(SEEDS)).find(|seeds| seeds.is_dir())
    else {
        println!("skipped: no {SEEDS} above {package}");
        return;
    };
    let folder = seeds.join(target);
    let problem = |error| -> ! { panic!("{}: {error}", folder.display()) };
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| problem(error));
    let inputs: Vec<_> = entries.map(|entry| entry.unwrap_or_else(|error| problem(error)).path()).collect();
    assert!(!inputs.is_empty(), "{}: no inputs", folder.display());
    for input in inputs {
        println!("{}", input.display());
        run(&fs::read(&input).unwrap_or_else(|error| panic!("{}: {error}", input.display())));
    }
}

#[cfg(test)]
mod tests {
    use super::replay;
    use std::{env, fs, panic, process};

    #[test]
    fn every_input_of_a_target_is_replayed() {
        let root = env::temp_dir().join(format!("replayed-seeds-{}", process::id()));
        let package = root.join("crates/package");
        let replayed = |target: &str| {
            let mut found = Vec::new();
            replay(package.to_str().expect("text"), target, |bytes| found.push(bytes.to_vec()));
            found.sort();
            found
        };
        fs::create_dir_all(&package).expect("a package");
        assert_eq!(replayed("one"), Vec::<Vec<u8>>::new(), "a published package");
        for (target, inputs) in [("one", &[b"a", b"b"][..]), ("none", &[])] {
            let folder = root.join("fuzz/seeds").join(target);
            fs::create_dir_all(&folder).expect("a target");
            inputs.iter().for_each(|input| fs::write(folder.join(format!("{}", input[0])), input).expect("an input"));
        }
        assert_eq!(replayed("one"), [b"a", b"b"]);
        for missing in ["none", "unknown"] {
            panic::catch_unwind(|| replayed(missing)).expect_err("the target has no inputs");
        }
        fs::remove_dir_all(root).expect("removed");
    }
}
