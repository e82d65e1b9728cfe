//! Character encodings, as requests finds them.

/// The label that `Content-Type` names, or requests' default for `text/*` (ISO-8859-1) and JSON (utf-8); `None` where
/// detection has to decide.
pub fn encoding_of(content_type: Option<&[u8]>) -> Option<String> {
    let _ = content_type;
    unimplemented!()
}

/// The text of a body. Never fails: an unknown label is lossy UTF-8.
pub fn decode_text(body: &[u8], content_type: Option<&[u8]>) -> String {
    let _ = (body, content_type);
    unimplemented!()
}
