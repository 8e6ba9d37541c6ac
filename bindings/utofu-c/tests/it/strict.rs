//! Strict mode, and wrong settings.

use crate::tools::{compiled, ended};
use process_tests::{child, programs::Linkage};

/// The uses that the real machine leaves undefined, and what strict mode says of each.
const USES: [(&str, &str); 6] = [
    ("unregistered-local", "utofu_put: 100 bytes of local memory at tag 0x1000 + 200 are not registered"),
    ("unregistered-remote", "utofu_put: CQ 0.0/7 of rank 0 has no memory registered under tag"),
    ("reused-put", "utofu_put: the buffer of 100 bytes at 0x"),
    ("reused-get", "utofu_get: the buffer of 100 bytes at 0x"),
    ("tag", "utofu_reg_mem_with_stag: tag 5 is in use already"),
    ("thread", "utofu_poll_tcq: a thread uses a VCQ of another one, which was not created as thread-safe"),
];

pub(crate) fn each_undefined_use_is_reported() {
    let Some(program) = compiled("strict", Linkage::Shared) else { return };
    let run = |name: &str, strict: &str| {
        let mut command = child::program(&program, [name]);
        command.env("ONESIDED_UTOFU_STRICT", strict);
        ended(command)
    };
    for (name, text) in USES {
        let ended = run(name, "1");
        assert!(ended.out == format!("strict: {name}\n"), "{ended}");
        let said: Vec<&str> = ended.err.lines().collect();
        assert!(said.iter().any(|line| line.starts_with(&format!("utofu strict: rank 0: {text}"))), "{name}: {ended}");
        // A poll reports errors of commands that asked for no notice, in strict mode or not.
        if !name.starts_with("unregistered") {
            assert!(run(name, "0").err.is_empty(), "{name}");
        }
    }
    for name in ["correct", "safe"] {
        let ended = run(name, "1");
        assert!(ended.code() == Some(0) && ended.err.is_empty(), "{ended}");
    }
}

pub(crate) fn wrong_settings_are_named() {
    let Some(program) = compiled("utofu_counter", Linkage::Shared) else { return };
    for (name, value) in
        [("ONESIDED_UTOFU_MRQ", "100"), ("ONESIDED_UTOFU_STRICT", "yes"), ("ONESIDED_SEGMENT_BYTES", "x")]
    {
        let mut command = child::program(&program, [""; 0]);
        command.env(name, value);
        let ended = ended(command);
        assert_eq!(ended.code(), Some(1), "{ended}");
        assert!(ended.err.starts_with("utofu: error: ") && ended.err.contains(name), "{name}: {ended}");
        assert!(ended.err.contains("-768, FATAL"), "{ended}");
    }
}
