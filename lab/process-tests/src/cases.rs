//! The cases of a test program, with the options of `cargo test`.

use fabric_conformance::watchdog::watch;
use libtest_mimic::{Arguments, Trial};
use std::{env, fmt, process::ExitCode};

/// A test with its name.
pub struct Case {
    name: String,
    is_ignored: bool,
    run: Box<dyn FnOnce() + Send>,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Case({})", self.name)
    }
}

impl Case {
    /// A case that `run` runs; it fails if that panics.
    pub fn new(name: impl Into<String>, run: impl FnOnce() + Send + 'static) -> Self {
        Case { name: name.into(), is_ignored: false, run: Box::new(run) }
    }

    /// The same case, which runs with `--ignored` only.
    #[must_use]
    pub fn ignored(self) -> Self {
        Case { is_ignored: true, ..self }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Returns the [cases](Case) of functions, named by their paths.
///
/// ```
/// mod deaths {
///     pub fn a_killed_rank_is_reported() {}
/// }
/// let cases = process_tests::cases![deaths::a_killed_rank_is_reported];
/// assert_eq!(cases[0].name(), "deaths::a_killed_rank_is_reported");
/// ```
#[macro_export]
macro_rules! cases {
    ($($function:path),* $(,)?) => {
        vec![$($crate::Case::new(stringify!($function), $function)),*]
    };
}

/// Returns functions with their paths as names, for [cases](Case) that are generated from them, and for
/// child processes that find their part by its name.
///
/// ```
/// mod memory {
///     pub fn puts_arrive(rank: usize) {
///         assert!(rank < 2);
///     }
/// }
/// const PARTS: &[(&str, fn(usize))] = &process_tests::named![memory::puts_arrive];
/// assert_eq!(PARTS[0].0, "memory::puts_arrive");
/// ```
#[macro_export]
macro_rules! named {
    ($($function:path),* $(,)?) => {
        [$((stringify!($function), $function)),*]
    };
}

/// Runs the cases that the arguments of this program select, one after the other on the calling
/// thread, each under the [watchdog](fabric_conformance::watchdog) unless it is ignored by default.
pub fn run(cases: Vec<Case>) -> ExitCode {
    run_with(env::args(), cases)
}

/// The options that take the next argument as their value.
const WITH_VALUE: [&str; 6] = ["--test-threads", "--logfile", "--skip", "--color", "--format", "-Z"];

/// Splits arguments into options and filters: libtest-mimic accepts a single filter, libtest any number.
fn split(arguments: impl IntoIterator<Item = String>) -> (Vec<String>, Vec<String>) {
    let mut arguments = arguments.into_iter();
    // The first one is the program.
    let (mut options, mut filters): (Vec<_>, _) = (arguments.next().into_iter().collect(), Vec::new());
    while let Some(argument) = arguments.next() {
        if argument == "--" {
            filters.extend(arguments.by_ref());
        } else if !argument.starts_with('-') {
            filters.push(argument);
        } else {
            let value = if WITH_VALUE.contains(&&*argument) { arguments.next() } else { None };
            options.extend([argument].into_iter().chain(value));
        }
    }
    (options, filters)
}

fn run_with(arguments: impl IntoIterator<Item = String>, cases: Vec<Case>) -> ExitCode {
    let (options, filters) = split(arguments);
    let mut arguments = Arguments::from_iter(options);
    let is_exact = arguments.exact;
    let is_named = |name: &str, patterns: &[String]| {
        patterns.iter().any(|pattern| if is_exact { name == pattern } else { name.contains(pattern) })
    };
    let is_selected = |name: &str| (filters.is_empty() || is_named(name, &filters)) && !is_named(name, &arguments.skip);
    // libtest-mimic skips the others by their full names, and counts them.
    let others = cases.iter().filter(|case| !is_selected(case.name())).map(|case| case.name.clone()).collect();
    (arguments.exact, arguments.skip) = (true, others);
    // Limits, signals and the children of a case are those of the whole process.
    arguments.test_threads = Some(1);
    let trial = |Case { name, is_ignored, run }: Case| {
        let watched = name.clone();
        let test = move || {
            let _watched = (!is_ignored).then(|| watch(watched));
            run();
            Ok(())
        };
        Trial::test(name, test).with_ignored_flag(is_ignored)
    };
    libtest_mimic::run(&arguments, cases.into_iter().map(trial).collect()).exit_code()
}

#[cfg(test)]
mod tests {
    use super::{Case, run_with};
    use std::{
        process::ExitCode,
        sync::{
            Arc,
            atomic::{AtomicU32, Ordering::Relaxed},
        },
        thread,
    };

    fn succeeds() {}

    /// Returns the outcome, and the sum of the cases that ran.
    fn outcome(arguments: &[&str]) -> (String, u32) {
        let sum = Arc::new(AtomicU32::new(0));
        let this_thread = thread::current().id();
        let case = |name: &str, number: u32| {
            let sum = Arc::clone(&sum);
            Case::new(name, move || {
                assert_eq!(thread::current().id(), this_thread);
                sum.fetch_add(number, Relaxed);
                assert!(number != 4, "it fails");
            })
        };
        let mut cases = vec![case("a::one", 1), case("a::two", 2), case("b::four", 4), case("long", 8).ignored()];
        cases.extend(crate::cases![succeeds, self::succeeds]);
        let arguments = ["program"].iter().chain(arguments).map(|word| (*word).to_owned());
        let code = run_with(arguments, cases);
        (format!("{code:?}"), sum.load(Relaxed))
    }

    #[test]
    fn options_of_cargo_test_select_cases() {
        let [good, bad] = [ExitCode::SUCCESS, ExitCode::from(101)].map(|code| format!("{code:?}"));
        assert_eq!(outcome(&[]), (bad.clone(), 7), "all but ignored ones, also after a failure");
        assert_eq!(outcome(&["a::"]), (good.clone(), 3));
        assert_eq!(outcome(&["--exact", "b::four"]), (bad.clone(), 4));
        assert_eq!(outcome(&["two", "four"]), (bad, 6), "any of the filters");
        assert_eq!(outcome(&["one", "--skip", "four", "--", "two", "b::"]), (good.clone(), 3));
        assert_eq!(outcome(&["--exact", "a::one", "two"]), (good.clone(), 1));
        assert_eq!(outcome(&["--ignored", "one", "two", "--test-threads", "2"]), (good.clone(), 0));
        assert_eq!(outcome(&["--include-ignored", "--color", "never", "long", "one"]), (good.clone(), 9));
        assert_eq!(outcome(&["--skip", "four", "--test-threads=2"]), (good.clone(), 3));
        assert_eq!(outcome(&["--ignored"]), (good.clone(), 8));
        assert_eq!(outcome(&["--list"]), (good, 0));
        assert_eq!(crate::cases![self::succeeds][0].name(), "self::succeeds");
    }
}
