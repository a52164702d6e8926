//! The microversion of a request: read from its headers, told in the answer, asked by whatever is younger than 1.1.
//!
//! Pure. What each version brought stands in `versions`; numbers of fields and endpoints stand in their tables, and are checked
//! against it.

use std::fmt;

use super::error::Error;

/// The minor number of a version `1.N`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microversion(pub u16);

/// The oldest version this server speaks.
pub const MINIMUM: Microversion = Microversion(1);
/// The youngest version this server speaks.
pub const MAXIMUM: Microversion = Microversion(115);
/// Below this version `.json` behind a name in a path is dropped.
pub const NO_SUFFIX_SINCE: u16 = 91;

impl fmt::Display for Microversion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "1.{}", self.0)
    }
}

/// The version a request is to be served with.
///
/// `own`: values of `X-OpenStack-Ironic-API-Version`; `of_services`: those of `OpenStack-API-Version`, which name the service too and
/// win.
///
/// # Errors
/// [`Error::VersionMalformed`], [`Error::VersionOutOfRange`].
pub fn negotiate<'a>(
    own: impl IntoIterator<Item = &'a str>,
    of_services: impl IntoIterator<Item = &'a str>,
) -> Result<Microversion, Error> {
    let for_us = of_services
        .into_iter()
        .flat_map(|value| value.split(','))
        .filter_map(|entry| entry.trim().split_once(char::is_whitespace))
        .find(|(service, _)| service.eq_ignore_ascii_case("baremetal"))
        .map(|(_, version)| version.trim());
    match for_us.or_else(|| own.into_iter().next().map(str::trim)) {
        None => Ok(MINIMUM),
        Some(text) => parse(text),
    }
}

fn parse(text: &str) -> Result<Microversion, Error> {
    if text.eq_ignore_ascii_case("latest") {
        return Ok(MAXIMUM);
    }
    let malformed = || Error::VersionMalformed(text.chars().take(40).collect());
    let (major, minor) = text.split_once('.').ok_or_else(malformed)?;
    let is_number = |part: &str| {
        !part.is_empty() && part.len() <= 9 && part.bytes().all(|b| b.is_ascii_digit())
    };
    if !is_number(major) || !is_number(minor) {
        return Err(malformed());
    }
    let out_of_range = || Error::VersionOutOfRange(text.to_owned());
    let minor: u16 = minor.parse().map_err(|_| out_of_range())?;
    let version = Microversion(minor);
    if major != "1" || version < MINIMUM || version > MAXIMUM {
        return Err(out_of_range());
    }
    Ok(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(own: &[&str], services: &[&str]) -> Result<u16, &'static str> {
        match negotiate(own.iter().copied(), services.iter().copied()) {
            Ok(version) => Ok(version.0),
            Err(Error::VersionMalformed(_)) => Err("malformed"),
            Err(Error::VersionOutOfRange(_)) => Err("out of range"),
            Err(_) => Err("other"),
        }
    }

    #[test]
    fn the_table_of_negotiation() {
        assert_eq!(of(&[], &[]), Ok(1));
        assert_eq!(of(&["1.62"], &[]), Ok(62));
        assert_eq!(of(&["latest"], &[]), Ok(115));
        assert_eq!(of(&["1.1"], &["baremetal 1.80"]), Ok(80));
        assert_eq!(of(&["1.5"], &["compute 2.1, baremetal latest"]), Ok(115));
        assert_eq!(of(&["1.5"], &["compute 2.1"]), Ok(5));
        assert_eq!(of(&["1.115"], &[]), Ok(115));
        for text in ["1.116", "1.0", "2.1", "0.5", "1.99999", "9.99"] {
            assert_eq!(of(&[text], &[]), Err("out of range"), "{text}");
        }
        for text in [
            "",
            "1",
            "1.",
            "1.x",
            "1.-5",
            "v1.5",
            "1.5.6",
            "one.two",
            "1.99999999999",
        ] {
            assert_eq!(of(&[text], &[]), Err("malformed"), "{text}");
        }
        assert_eq!(of(&["1.5"], &["baremetal nonsense"]), Err("malformed"));
    }
}
