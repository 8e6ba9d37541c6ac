//! Panics of explored programs: findings, to be told once and in place, not printed as they come.

use std::{
    any::Any,
    cell::{Cell, RefCell},
    panic,
    sync::Once,
};

thread_local! {
    static EXPLORING: Cell<bool> = const { Cell::new(false) };
    /// Where this thread's last panic came from.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Run `f`, whose panics are not printed.
pub(crate) fn while_exploring<T>(f: impl FnOnce() -> T) -> T {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if EXPLORING.get() {
                PLACE.set(info.location().map(ToString::to_string).unwrap_or_default());
            } else {
                before(info);
            }
        }));
    });
    struct Reset(bool);
    impl Drop for Reset {
        fn drop(&mut self) {
            EXPLORING.set(self.0);
        }
    }
    let _reset = Reset(EXPLORING.replace(true));
    f()
}

/// What a panic said, and where.
pub(crate) fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    match PLACE.take() {
        place if place.is_empty() => text.to_owned(),
        place => format!("{text} ({place})"),
    }
}
