//! The exported names of the shared library.

use process_tests::programs::exported_names;
use std::collections::BTreeSet;

/// ACP's interface between its layers, which programs do not call.
const INTERNAL: &str = "iacp_query_starter_ga_dl iacp_query_starter_ga_cl iacp_starter_memory_size_dl \
    iacp_starter_memory_size_cl iacpbl_option iacp_init_dl iacp_init_cl iacp_finalize_dl iacp_finalize_cl \
    iacp_abort_dl iacp_abort_cl";

/// Returns the names of the functions that a header declares.
fn declared(header: &str) -> impl Iterator<Item = &str> {
    let declarations = header.lines().filter(|line| !line.starts_with([' ', '/', '#', '*']) && line.contains('('));
    declarations.filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next())
}

pub(crate) fn the_functions_of_the_headers_are_exported() {
    let Some(exported) = exported_names("acp_c") else { return };
    let exported: BTreeSet<&str> = exported.iter().map(String::as_str).collect();
    let headers = [
        include_str!("../../include/acp.h"),
        include_str!("../../include/acp_middle.h"),
        include_str!("../../include/acp_containers.h"),
    ];
    let of_headers: BTreeSet<&str> = headers.into_iter().flat_map(declared).collect();
    assert!(of_headers.len() >= 29 && of_headers.iter().all(|name| name.starts_with("acp_")), "{of_headers:?}");
    let wanted = of_headers.into_iter().chain(INTERNAL.split_whitespace());
    let missing: Vec<&str> = wanted.filter(|name| !exported.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
    let foreign: Vec<_> =
        exported.iter().filter(|name| !name.starts_with("acp_") && !name.starts_with("iacp")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
}
