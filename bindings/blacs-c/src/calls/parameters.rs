//! `blacs_get` and `blacs_set`.

use super::handles::message_ids;
use crate::{
    arguments::Integers,
    boundary::Call,
    contexts::JOB,
    int::{Int, int, narrow},
};
use blacs::Parameters;

/// All arguments are checked, as in a debug build of the reference implementation.
const DEBUG_LEVEL: Int = 1;

pub(crate) fn get(routine: &'static str, context: Int, what: Int, value: Integers) {
    let call = Call { routine, context };
    match what {
        0 => value.set(0, JOB),
        1 => message_ids(value),
        2 => value.set(0, DEBUG_LEVEL),
        10 => value.set(0, call.run(|library| library.contexts.system_of(context))),
        11..=16 => {
            let parameters = call.run(|library| Ok(library.contexts.open(context)?.parameters()));
            value.set(0, get_parameter(&parameters, what));
        }
        _ => unknown(call, what),
    }
}

fn get_parameter(parameters: &Parameters, what: Int) -> Int {
    match what {
        11 => parameters.broadcast_rings as Int,
        12 => int(parameters.broadcast_branches),
        13 => parameters.combine_rings as Int,
        14 => int(parameters.combine_branches),
        15 => parameters.repeatable.into(),
        _ => parameters.coherent.into(),
    }
}

pub(crate) fn set(routine: &'static str, context: Int, what: Int, value: Integers) {
    let call = Call { routine, context };
    match what {
        0..=2 | 10 => call.run(|library| {
            call.warn(library, format_args!("what = {what} can't be set"));
            Ok(())
        }),
        11..=16 => set_parameter(call, what, value.get(0)),
        _ => unknown(call, what),
    }
}

fn set_parameter(call: Call, what: Int, value: Int) {
    call.run(|library| {
        let grid = library.contexts.open_mut(call.context)?;
        let mut parameters = grid.parameters();
        // Values out of range are rejected in the same way as 0.
        let (rings, branches) = (narrow(value).unwrap_or(0), usize::try_from(value).unwrap_or(0));
        match what {
            11 => parameters.broadcast_rings = rings,
            12 => parameters.broadcast_branches = branches,
            13 => parameters.combine_rings = rings,
            14 => parameters.combine_branches = branches,
            15 => parameters.repeatable = value != 0,
            _ => parameters.coherent = value != 0,
        }
        if let Err(refused) = grid.set_parameters(parameters) {
            call.warn(library, format_args!("what = {what} stays as it was: {refused}"));
        }
        Ok(())
    });
}

#[cold]
fn unknown(call: Call, what: Int) {
    call.run(|library| {
        call.warn(library, format_args!("there is no what = {what}"));
        Ok(())
    });
}
