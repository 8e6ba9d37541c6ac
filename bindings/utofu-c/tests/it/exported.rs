//! The names that the shared library exports.

use process_tests::programs::exported_names;
use std::collections::BTreeSet;

const HEADER: &str = include_str!("../../include/utofu.h");

pub(crate) fn the_functions_of_the_header_are_exported() {
    let Some(exported) = exported_names("tofucom") else { return };
    let declared = HEADER.lines().filter_map(|line| {
        let rest = line.strip_prefix("int ").or_else(|| line.strip_prefix("void "))?;
        rest.split_once('(').map(|(name, _)| name.to_owned())
    });
    let mut names: BTreeSet<String> = declared.collect();
    assert_eq!(names.len(), 65, "{names:?}");
    // Programs declare it themselves.
    names.insert("utofu_get_last_error".to_owned());
    assert_eq!(exported, names);
}
