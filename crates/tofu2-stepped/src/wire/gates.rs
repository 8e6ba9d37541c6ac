//! Wires, values and results of barrier gates.

use super::{Reader, Wire, wire_enum, wire_struct};
use rdma_fabric::barrier::{GateValue, Progress, ReduceOp, Values, Wiring};

wire_struct!(Wiring { gate, source_local, source_remote, destination_local, destination_remote });
wire_enum!(Progress { 0 = NotCompleted {}, 1 = Completed { 0: values } });
wire_enum!(ReduceOp {
    1 = Barrier {},
    2 = BitAnd {},
    3 = BitOr {},
    4 = BitXor {},
    5 = Max {},
    6 = MaxLoc {},
    7 = Sum {},
    8 = BfpSum {},
});

impl Wire for Values {
    fn put(&self, words: &mut Vec<u64>) {
        fn all<T: GateValue>(values: &Values, bits: impl Fn(T) -> u64) -> Vec<u64> {
            (0..values.len()).filter_map(|at| values.get(at)).map(bits).collect()
        }
        let floats = all(self, f64::to_bits);
        let is_float = !floats.is_empty();
        ((self.op(), is_float), if is_float { floats } else { all(self, |word: u64| word) }).put(words);
    }

    fn take(words: &mut Reader<'_>) -> Option<Self> {
        let ((op, is_float), bits) = <((ReduceOp, bool), Vec<u64>)>::take(words)?;
        match is_float {
            true => Values::new(op, &bits.into_iter().map(f64::from_bits).collect::<Vec<_>>()).ok(),
            false => Values::new(op, &bits).ok(),
        }
    }
}
