//! Images and documents: where their bytes are, in whatever provider's spelling they were stored.

use super::block::ThreadBlock;
use super::json::{object, quoted};
use crate::json::{Member, get, members, string};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Media {
    Url(String),
    Bytes { media_type: String, data: String },
    File(String),
    Text(String),
}

impl Media {
    /// An image: a URL as a string, or an object in one of the providers' forms.
    pub(super) fn image(content: &str) -> Option<Self> {
        match string(content) {
            Some(text) => is_url(&text).then(|| Self::of_url(&text)),
            None => Self::of_object(content).filter(|media| !matches!(media, Self::Text(_))),
        }
    }

    pub(super) fn document(content: &str) -> Option<Self> {
        match string(content) {
            Some(text) => Some(Self::Text(text.into_owned())),
            None => Self::of_object(content),
        }
    }

    fn of_object(content: &str) -> Option<Self> {
        let found = members(content);
        // Anthropic has `source`, OpenAI `image_url` and `file`.
        let inner = ["source", "image_url", "file"].iter();
        // Bedrock says the type beside `source`.
        let format = get(&found, "format").and_then(string);
        if let (Some(format), Some(source)) = (format, get(&found, "source")) {
            return Self::of_bedrock(&format, &members(source));
        }
        let inner = inner.filter_map(|name| get(&found, name));
        for inner in inner {
            let media = match string(inner) {
                Some(url) => Some(Self::of_url(&url)),
                None => Self::of_members(&members(inner)),
            };
            if media.is_some() {
                return media;
            }
        }
        Self::of_members(&found)
    }

    fn of_bedrock(format: &str, source: &[Member<'_>]) -> Option<Self> {
        let text = |name: &str| get(source, name).and_then(string);
        let place = get(source, "s3Location").map(members).unwrap_or_default();
        let uri = get(&place, "uri").and_then(string);
        let text_alone = text("text").map(|text| Self::Text(text.into_owned()));
        let bytes = text("bytes").map(|data| Self::Bytes {
            media_type: media_type(format).to_owned(),
            data: data.into_owned(),
        });
        text_alone
            .or(bytes)
            .or(uri.map(|uri| Self::Url(uri.into_owned())))
    }

    fn of_members(found: &[Member<'_>]) -> Option<Self> {
        let text = |names: &[&str]| {
            let values = names.iter().filter_map(|name| get(found, name));
            values.filter_map(string).next()
        };
        if let Some(data) = text(&["data", "file_data"]) {
            if text(&["type"]).is_some_and(|name| name == "text") {
                return Some(Self::Text(data.into_owned()));
            }
            if let Some(media) = base64_url(&data) {
                return Some(media);
            }
            return Some(Self::Bytes {
                media_type: text(&["media_type", "mimeType", "mime_type"])?.into_owned(),
                data: data.into_owned(),
            });
        }
        if let Some(url) = text(&["url", "file_url", "image_url", "fileUri", "file_uri"]) {
            return Some(Self::of_url(&url));
        }
        text(&["file_id"]).map(|id| Self::File(id.into_owned()))
    }

    fn of_url(url: &str) -> Self {
        base64_url(url).unwrap_or_else(|| Self::Url(url.to_owned()))
    }

    /// The bytes as a `data:` URL, or the URL; `None` for files and text.
    pub(super) fn url(&self) -> Option<String> {
        match self {
            Self::Url(url) => Some(url.clone()),
            Self::Bytes { media_type, data } => Some(format!("data:{media_type};base64,{data}")),
            Self::File(_) | Self::Text(_) => None,
        }
    }

    pub(super) fn source(&self) -> String {
        let fields: &[(&str, &str)] = match self {
            Self::Url(url) => &[("type", "url"), ("url", url)],
            Self::Bytes { media_type, data } => &[
                ("type", "base64"),
                ("media_type", media_type),
                ("data", data),
            ],
            Self::File(id) => &[("type", "file"), ("file_id", id)],
            Self::Text(text) => &[
                ("type", "text"),
                ("media_type", "text/plain"),
                ("data", text),
            ],
        };
        object(fields.iter().map(|(name, value)| (name, quoted(value))))
    }
}

/// Bedrock's words for types.
const FORMATS: [(&str, &str); 12] = [
    ("png", "image/png"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("pdf", "application/pdf"),
    ("txt", "text/plain"),
    ("csv", "text/csv"),
    ("html", "text/html"),
    ("md", "text/markdown"),
    ("doc", "application/msword"),
    (
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    (
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
];

fn media_type(format: &str) -> &str {
    let known = FORMATS.iter().find(|(name, _)| *name == format);
    known.map_or("application/octet-stream", |(_, media)| media)
}

/// Bedrock's word for a type, if it has one.
pub(super) fn format(media_type: &str) -> Option<&'static str> {
    let known = FORMATS.iter().find(|(_, media)| *media == media_type);
    known.map(|(name, _)| *name)
}

fn is_url(text: &str) -> bool {
    text.starts_with("data:") || text.contains("://")
}

fn base64_url(url: &str) -> Option<Media> {
    let (head, data) = url.strip_prefix("data:")?.split_once(";base64,")?;
    let media_type = head.split(';').next().unwrap_or_default();
    Some(Media::Bytes {
        media_type: media_type.to_owned(),
        data: data.to_owned(),
    })
}

/// OpenAI's `detail` of an image as JSON, from the content or from the other members of the part.
pub(super) fn detail(block: &ThreadBlock) -> Option<String> {
    let of = |raw: Option<&str>| {
        let found = members(raw?);
        get(&found, "detail").map(str::to_owned)
    };
    of(block.content()).or_else(|| of(block.data("data_part")))
}

/// The name of a document's file as the content says, or the block's key or id.
pub(super) fn filename(block: &ThreadBlock) -> String {
    let content = members(block.content().unwrap_or_default());
    let file = get(&content, "file").map(members).unwrap_or_default();
    let known = [&content, &file].into_iter();
    let mut known = known.filter_map(|found| get(found, "filename").and_then(string));
    let name = known.next().map(|name| name.into_owned());
    name.unwrap_or_else(|| block.key().unwrap_or(block.id()).to_owned())
}
