use super::*;
use clap::CommandFactory;

fn parse(line: &str) -> Result<Arguments, clap::Error> {
    Arguments::try_parse_from(without_lone_separator(line.split_whitespace().map(OsString::from)))
}

#[test]
fn the_definition_is_consistent() {
    Arguments::command().debug_assert();
}

#[test]
fn a_lone_separator_is_skipped_by_reproduce() {
    for line in ["onesided reproduce --check", "onesided reproduce -- --check", "onesided reproduce --check --"] {
        match parse(line).expect(line).command {
            Command::Reproduce(options) => assert!(options.check, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
}

#[test]
fn the_separator_of_run_keeps_its_meaning() {
    match parse("onesided run -n 4 --segment-bytes 64M -- prog -n 9 -- x").expect("valid").command {
        Command::Run(options) => {
            assert_eq!((options.ranks.get(), options.segment_bytes), (4, Some(SegmentBytes(64 << 20))));
            assert_eq!(options.program, ["prog", "-n", "9", "--", "x"]);
        }
        other => panic!("{other:?}"),
    }
    assert!(parse("onesided run -n 4").is_err());
    assert!(parse("onesided run -n 0 -- prog").is_err());
    assert!(parse("onesided run -n 4 --segment-bytes 12X -- prog").is_err());
}

#[test]
fn run_has_shared_memory_unless_a_network_is_simulated() {
    for (line, wanted) in [
        ("onesided run -n 2 -- prog", (RunFabric::Shm, None, None)),
        (
            "onesided run --fabric virt --platform tofud --seed 3 -n 2 -- prog",
            (RunFabric::Virt, Some(Network::Tofud), Some(3)),
        ),
    ] {
        match parse(line).expect(line).command {
            Command::Run(run) => assert_eq!((run.fabric, run.platform, run.seed), wanted, "{line}"),
            other => panic!("{line}: {other:?}"),
        }
    }
    assert!(parse("onesided run --fabric cluster -n 2 -- prog").is_err());
}

#[test]
fn queue_statistics_are_off_by_default() {
    for (line, wanted) in [
        ("onesided run -n 2 -- prog --progress-thread", (false, false)),
        ("onesided run -n 2 --shared-address-space -- prog", (true, false)),
        ("onesided run --progress-thread -n 2 -- prog", (false, true)),
    ] {
        match parse(line).expect(line).command {
            Command::Run(run) => assert_eq!((run.shared_address_space, run.progress_thread), wanted, "{line}"),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unknown_papers_are_refused_with_the_known_ones() {
    let error = parse("onesided reproduce --paper mpi").expect_err("no such paper").to_string();
    assert!(error.contains("lock, acp, fmpl, prdma, xmp"), "{error}");
}
