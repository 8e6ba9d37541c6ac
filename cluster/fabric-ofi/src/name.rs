//! Names of endpoints, as peers exchange them.

use crate::error::BadName;

/// The start of all names: a magic number, and the version of the encoding.
const MARK: [u8; 4] = *b"OFI\x01";
/// The number of the address format for texts.
const TEXT: u32 = fabric_ofi_sys::FI_ADDR_STR;

/// An address, and the data with which a peer checks that it can use the address.
///
/// As bytes: the magic number, the address format (4 bytes, little-endian), the length of the
/// provider's name (1 byte), that name, the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Name {
    pub(crate) provider: String,
    pub(crate) form: u32,
    pub(crate) address: Vec<u8>,
}

impl Name {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let provider = &self.provider.as_bytes()[..self.provider.len().min(255)];
        let mut bytes = MARK.to_vec();
        bytes.extend(self.form.to_le_bytes());
        bytes.push(provider.len() as u8);
        bytes.extend(provider);
        bytes.extend(&self.address);
        bytes
    }

    pub(crate) fn from_bytes(bytes: &[u8]) -> Result<Self, BadName> {
        let read = || {
            let rest = bytes.strip_prefix(&MARK)?;
            let (form, rest) = rest.split_first_chunk()?;
            let (len, rest) = rest.split_first()?;
            let (provider, address) = rest.split_at_checked(usize::from(*len))?;
            let provider = String::from_utf8(provider.to_vec()).ok()?;
            Some(Self { provider, form: u32::from_le_bytes(*form), address: address.to_vec() })
        };
        read().ok_or(BadName::Form { len: bytes.len() })
    }

    /// Returns the peer's address if the endpoint with the name `self` can use it.
    ///
    /// A provider reads the number of bytes that the format prescribes, so it must not be passed an
    /// address of a different length.
    pub(crate) fn accept<'a>(&self, theirs: &'a Self, longest: usize) -> Result<&'a [u8], BadName> {
        if self.provider != theirs.provider {
            return Err(BadName::Provider { ours: self.provider.clone(), theirs: theirs.provider.clone() });
        }
        let address = &theirs.address[..];
        let fits = self.form == theirs.form
            && match self.form {
                TEXT => {
                    address.len() <= longest
                        && address.iter().position(|byte| *byte == 0) == Some(address.len().wrapping_sub(1))
                }
                // Socket addresses start with their family, which determines their length.
                _ => {
                    address.len() == self.address.len() && address.get(..2) == self.address.get(..2)
                        || !self.is_socket() && address.len() == self.address.len()
                }
            };
        if !fits {
            return Err(BadName::Address { ours: self.form, theirs: theirs.form, len: address.len() });
        }
        Ok(address)
    }

    fn is_socket(&self) -> bool {
        use fabric_ofi_sys::{FI_SOCKADDR, FI_SOCKADDR_IB, FI_SOCKADDR_IN, FI_SOCKADDR_IN6};
        [FI_SOCKADDR, FI_SOCKADDR_IN, FI_SOCKADDR_IN6, FI_SOCKADDR_IB].contains(&self.form)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_ofi_sys::{FI_ADDR_STR, FI_SOCKADDR_IN};
    use proptest::prelude::*;

    fn name(provider: &str, form: u32, address: &[u8]) -> Name {
        Name { provider: provider.to_owned(), form, address: address.to_vec() }
    }

    proptest! {
        #[test]
        fn bytes_lead_back(provider in "[a-z;_]{0,40}", form: u32, address: Vec<u8>) {
            let name = Name { provider, form, address };
            prop_assert_eq!(Name::from_bytes(&name.to_bytes()).unwrap(), name);
        }

        #[test]
        fn garbage_is_refused(bytes: Vec<u8>) {
            if !bytes.starts_with(&MARK) {
                prop_assert_eq!(Name::from_bytes(&bytes), Err(BadName::Form { len: bytes.len() }));
            }
        }

        #[test]
        fn a_name_that_is_cut_off_is_refused(len in 0_usize..20) {
            let bytes = name("tcp;ofi_rxm", FI_SOCKADDR_IN, &[]).to_bytes();
            prop_assert!(Name::from_bytes(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn only_addresses_of_the_own_form_and_length_are_accepted() {
        let ours = name("tcp;ofi_rxm", FI_SOCKADDR_IN, &[2, 0, 1, 2, 3, 4]);
        let refused = |theirs: &Name| ours.accept(theirs, 64).unwrap_err();
        assert!(ours.accept(&name("tcp;ofi_rxm", FI_SOCKADDR_IN, &[2, 0, 9, 9, 9, 9]), 64).is_ok());
        assert!(matches!(refused(&name("shm", FI_SOCKADDR_IN, &[2, 0, 9, 9, 9, 9])), BadName::Provider { .. }));
        for (form, address) in
            [(FI_SOCKADDR_IN, &[2, 0, 9][..]), (FI_SOCKADDR_IN, &[10, 0, 9, 9, 9, 9]), (77, &[2, 0, 9, 9, 9, 9])]
        {
            assert!(matches!(refused(&name("tcp;ofi_rxm", form, address)), BadName::Address { .. }));
        }
    }

    #[test]
    fn texts_end_with_the_only_zero() {
        let ours = name("shm", FI_ADDR_STR, b"fi_shm://1\0");
        for (address, good) in [
            (&b"fi_shm://22222\0"[..], true),
            (b"no end", false),
            (b"", false),
            (b"a\0b\0", false),
            (&[b'x'; 64], false),
        ] {
            assert_eq!(ours.accept(&name("shm", FI_ADDR_STR, address), 64).is_ok(), good, "{address:?}");
        }
    }
}
