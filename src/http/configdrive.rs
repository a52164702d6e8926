//! Reads the config drive a request brings; it is passed on as it came and never shown.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::error::Error;
use super::request::Request;

/// The config drive as text: a URL, or gzip in base64. Empty text means none.
///
/// # Errors
/// [`Error::Bad`], [`Error::TooNew`]; neither quotes the value.
pub fn read(request: &Request, value: Value) -> Result<Option<String>, Error> {
    match value {
        Value::String(text) if text.is_empty() => Ok(None),
        Value::String(text) => check(text).map(Some).map_err(Error::Bad),
        Value::Object(_) => {
            request.need(56, "configdrive as an object")?;
            Err(Error::Bad(
                "configdrive: this version does not build config drives from an object; send the finished drive as gzip in base64, or its http or https URL.".to_owned(),
            ))
        }
        _ => Err(Error::Bad(
            "configdrive: must be a string (gzip in base64, or a URL).".to_owned(),
        )),
    }
}

fn check(text: String) -> Result<String, String> {
    if text.starts_with("http://") || text.starts_with("https://") {
        return match url::Url::parse(&text) {
            Ok(_) => Ok(text),
            Err(error) => Err(format!("configdrive: is no valid URL: {error}.")),
        };
    }
    let packed: String = text.split_ascii_whitespace().collect();
    match STANDARD.decode(&packed) {
        Ok(bytes) if bytes.starts_with(&[0x1f, 0x8b]) => Ok(packed),
        Ok(_) => Err("configdrive: is base64, but not of gzip data.".to_owned()),
        Err(_) => Err("configdrive: is neither base64 nor an http or https URL.".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drive_is_packed_text_or_a_url() {
        let packed = STANDARD.encode([0x1f, 0x8b, 8, 0, 1, 2, 3]);
        assert_eq!(check(packed.clone()), Ok(packed.clone()));
        assert_eq!(
            check(format!("{}\n{}", &packed[..4], &packed[4..])),
            Ok(packed)
        );
        assert!(check("https://drives.example/1".to_owned()).is_ok());
        for wrong in ["http://", "file:///etc/passwd", "not base64!", "aGVsbG8="] {
            let problem = check(wrong.to_owned()).unwrap_err();
            assert!(problem.starts_with("configdrive:"), "{problem}");
        }
    }
}
