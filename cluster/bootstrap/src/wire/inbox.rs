//! The bytes received over a connection that are not yet a complete message.

/// Received bytes of a connection, split into messages.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    begin: usize,
    limit: usize,
}

/// A message exceeds the size limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong;

impl Inbox {
    /// Creates an empty inbox. `limit` bounds the size of a message in bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), begin: 0, limit }
    }

    /// Sets the maximum size of a message to `limit` bytes from now on.
    pub(crate) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    /// Appends received bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.begin > 0 {
            self.bytes.drain(..self.begin);
            self.begin = 0;
        }
        self.bytes.extend_from_slice(bytes);
    }

    /// Takes exactly `N` bytes, if they have arrived.
    pub(crate) fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let taken = self.bytes.get(self.begin..self.begin + N)?.try_into().ok()?;
        self.begin += N;
        Some(taken)
    }

    /// Takes the next message without its length field, if it is complete.
    pub(crate) fn message(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let Some(head) = self.bytes.get(self.begin..self.begin + 4) else { return Ok(None) };
        let length = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if length > self.limit {
            return Err(TooLong);
        }
        let Some(message) = self.bytes.get(self.begin + 4..self.begin + 4 + length) else { return Ok(None) };
        let message = message.to_vec();
        self.begin += 4 + length;
        if self.begin == self.bytes.len() {
            // The longest messages arrive at the start and at the end of a job: free the memory in
            // between.
            (self.bytes, self.begin) = (Vec::new(), 0);
        }
        Ok(Some(message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_whole_however_their_bytes_came() {
        let stream = [3, 0, 0, 0, 1, 2, 3, 0, 0, 0, 0, 1, 0, 0, 0, 9];
        for step in 1..=stream.len() {
            let mut inbox = Inbox::new(3);
            let mut messages = Vec::new();
            for part in stream.chunks(step) {
                inbox.push(part);
                while let Some(message) = inbox.message().unwrap() {
                    messages.push(message);
                }
            }
            assert_eq!(messages, [vec![1, 2, 3], vec![], vec![9]]);
            assert_eq!(inbox.bytes.capacity(), 0, "room is given back");
        }
        let mut inbox = Inbox::new(2);
        inbox.push(&stream);
        assert_eq!(inbox.message(), Err(TooLong));
    }
}
