//! Forms with files, byte for byte.

use base64::Engine as _;
use longhaul::message::{Body, Multipart, OpenBody, Part};
use serde_json::Value;
use std::io::Read;

use crate::verdict::{Vector, Verdict, text};

fn bytes(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(text(value)).unwrap()
}

/// The form of a vector; its files in memory, or behind an opener that makes it a streamed one.
fn form(given: &Value, streamed: bool) -> Multipart {
    let mut form = Multipart::new();
    for field in given["fields"].as_array().unwrap() {
        form = form.field(text(&field["name"]), bytes(&field["value_b64"]));
    }
    for file in given["files"].as_array().unwrap() {
        let content = bytes(&file["content_b64"]);
        let length = content.len() as u64;
        let body = match streamed {
            false => Body::from(content),
            true => Body::replayable(move || {
                let reader = std::io::Cursor::new(content.clone());
                Ok((Box::new(reader) as Box<dyn Read + Send>, Some(length)))
            }),
        };
        let mut part = Part::new(text(&file["name"]), body);
        // requests names a bare content after its field.
        let name = file.get("file_name").unwrap_or(&file["name"]);
        if let Some(name) = name.as_str() {
            part = part.file_name(name);
        }
        if let Some(media_type) = file["type"].as_str() {
            part = part.content_type(media_type);
        }
        for pair in file["headers"].as_array().into_iter().flatten() {
            part = part.header(text(&pair[0]), text(&pair[1]));
        }
        form = form.part(part);
    }
    form
}

/// Type, length and bytes on the wire; nothing where the form is refused.
fn sent(given: &Value, streamed: bool) -> Option<(String, String, Vec<u8>)> {
    let (body, content_type) =
        form(given, streamed).with_boundary(text(&given["boundary"])).ok()?;
    let mut all = Vec::new();
    let length = match body.open().unwrap() {
        OpenBody::Bytes(bytes) => {
            all.extend_from_slice(&bytes);
            bytes.len() as u64
        }
        OpenBody::Reader(mut reader, length) => {
            reader.read_to_end(&mut all).unwrap();
            length.unwrap()
        }
        other => panic!("{other:?}"),
    };
    Some((content_type, length.to_string(), all))
}

pub(crate) fn multipart(vector: &Vector) -> Option<Verdict> {
    let (given, out) = (&vector.given, &vector.out);
    let [joined, streamed] = [false, true].map(|streamed| sent(given, streamed));
    let wanted = Some((
        text(&out["content_type"]).to_owned(),
        text(&out["content_length"]).to_owned(),
        bytes(&out["body_b64"]),
    ));
    let fields = given["files"].as_array().unwrap().iter();
    let mut fields = fields.filter_map(|file| file["headers"].as_array()).flatten();
    let is_ours = |pair: &Value| {
        ["content-disposition", "content-type", "content-location"]
            .contains(&&*text(&pair[0]).to_lowercase())
            || text(&pair[1]).contains(['\r', '\n'])
    };
    let rule = fields.any(is_ours).then_some("part-fields");
    Verdict::new(joined == wanted && streamed == wanted, rule, || {
        format!("{given}\nours {joined:?}\nrequests {wanted:?}")
    })
}
