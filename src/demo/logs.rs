//! The archive that `log.collect_system_logs` returns: a gzipped tar file with one text in it, as base64.
//!
//! Written by hand because it is forty lines: the gzip stream is "stored", so nothing is compressed.

use base64::Engine as _;

/// Packs one file.
///
/// `name` is shorter than 100 bytes; `text` is shorter than 8 MiB.
pub(crate) fn archive(name: &str, text: &str) -> String {
    base64::engine::general_purpose::STANDARD.encode(gzip_stored(&tar(name, text.as_bytes())))
}

fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0u8; 512];
    let mut put = |at: usize, bytes: &[u8]| header[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, name.as_bytes());
    put(100, b"0000644\0");
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    put(124, format!("{:011o}\0", content.len()).as_bytes());
    put(136, b"00000000000\0");
    put(148, b"        ");
    put(156, b"0");
    put(257, b"ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());

    let mut file = header.to_vec();
    file.extend(content);
    file.resize(file.len().next_multiple_of(512) + 1024, 0);
    file
}

fn gzip_stored(data: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    let blocks = data.chunks(0xffff).count();
    for (number, block) in data.chunks(0xffff).enumerate() {
        let length = block.len() as u16;
        out.push(u8::from(number + 1 == blocks));
        out.extend(length.to_le_bytes());
        out.extend((!length).to_le_bytes());
        out.extend(block);
    }
    out.extend(crc32(data).to_le_bytes());
    out.extend((data.len() as u32).to_le_bytes());
    out
}

fn crc32(data: &[u8]) -> u32 {
    !data.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_one_everybody_uses() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
    }

    #[test]
    fn the_archive_is_whole_blocks_and_names_the_file() {
        let file = tar("journal", b"hello");
        assert_eq!(file.len() % 512, 0);
        assert!(file.starts_with(b"journal\0"));
        assert_eq!(&file[512..517], b"hello");
        let packed = gzip_stored(&file);
        assert_eq!(&packed[..2], &[0x1f, 0x8b]);
        assert_eq!(packed.len(), 10 + 5 + file.len() + 8);
    }
}
