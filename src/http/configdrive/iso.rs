//! A config drive as an ISO 9660 image.
//!
//! Only what a config drive needs: a volume labelled `config-2` with a handful of small files, each of them in the folder
//! of the format's version and in `latest`. Names stay as they are, in lower case: every system that reads config drives
//! takes them. Times are left out, so that the same content makes the same image.

/// The label by which a running system finds its config drive.
const LABEL: &str = "config-2";
/// The folders below `openstack`, in the order of their names; both hold the same files.
const FOLDERS: [&str; 2] = ["2012-08-10", "latest"];

const SECTOR: usize = 2048;
/// The sectors before the first descriptor are not the file system's.
const DESCRIPTOR_AT: usize = 16;
const PATHS_LITTLE_AT: usize = 18;
const PATHS_BIG_AT: usize = 19;
const ROOT_AT: usize = 20;
const OPENSTACK_AT: usize = 21;
const FOLDERS_AT: usize = 22;
const FILES_AT: usize = FOLDERS_AT + FOLDERS.len();

const FILE: u8 = 0;
const FOLDER: u8 = 2;
/// How a folder calls itself and the one above.
const ITSELF: &[u8] = &[0];
const ABOVE: &[u8] = &[1];

/// An image with these files: names of at most 30 ASCII characters, in alphabetical order, and few enough for one sector
/// of names.
pub(super) fn image(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut at = FILES_AT;
    let mut listed = Vec::new();
    for (name, content) in files {
        let dot = if name.contains('.') { "" } else { "." };
        let full_name = format!("{name}{dot};1");
        listed.push(record(full_name.as_bytes(), at, content.len(), FILE));
        at += content.len().div_ceil(SECTOR);
    }
    let folder = |at: usize, above: usize| {
        [
            record(ITSELF, at, SECTOR, FOLDER),
            record(ABOVE, above, SECTOR, FOLDER),
        ]
        .concat()
    };

    let mut image = vec![0; DESCRIPTOR_AT * SECTOR];
    let mut put = |content: &[u8]| {
        image.extend(content);
        image.resize(image.len().next_multiple_of(SECTOR), 0);
    };
    put(&descriptor(at));
    put(b"\xffCD001\x01");
    put(&paths(u32::to_le_bytes, u16::to_le_bytes));
    put(&paths(u32::to_be_bytes, u16::to_be_bytes));
    put(&[
        folder(ROOT_AT, ROOT_AT),
        record(b"openstack", OPENSTACK_AT, SECTOR, FOLDER),
    ]
    .concat());
    let mut openstack = folder(OPENSTACK_AT, ROOT_AT);
    for (number, name) in FOLDERS.iter().enumerate() {
        openstack.extend(record(name.as_bytes(), FOLDERS_AT + number, SECTOR, FOLDER));
    }
    put(&openstack);
    for number in 0..FOLDERS.len() {
        put(&[folder(FOLDERS_AT + number, OPENSTACK_AT), listed.concat()].concat());
    }
    for (_, content) in files {
        put(content);
    }
    image
}

/// The primary volume descriptor of an image of `sectors`.
fn descriptor(sectors: usize) -> Vec<u8> {
    let paths_size = paths(u32::to_le_bytes, u16::to_le_bytes).len();
    let mut text = b"\x01CD001\x01\x00".to_vec();
    text.extend(padded("", 32));
    text.extend(padded(LABEL, 32));
    text.extend([0; 8]);
    text.extend(both_32(sectors));
    text.extend([0; 32]);
    text.extend([both_16(1), both_16(1), both_16(SECTOR)].concat());
    text.extend(both_32(paths_size));
    text.extend(small_32(PATHS_LITTLE_AT).to_le_bytes());
    text.extend([0; 4]);
    text.extend(small_32(PATHS_BIG_AT).to_be_bytes());
    text.extend([0; 4]);
    text.extend(record(ITSELF, ROOT_AT, SECTOR, FOLDER));
    // Names of a set, a publisher, a preparer, a program; of three files about rights.
    text.extend(padded("", 4 * 128 + 3 * 37));
    // Four times that are not told.
    for _ in 0..4 {
        text.extend(b"0000000000000000\x00");
    }
    text.extend([1, 0]);
    text
}

/// The table of folders, in one byte order.
fn paths(long: fn(u32) -> [u8; 4], short: fn(u16) -> [u8; 2]) -> Vec<u8> {
    let entry = |name: &[u8], at: usize, above: u16| {
        let mut entry = vec![small_8(name.len()), 0];
        entry.extend(long(small_32(at)));
        entry.extend(short(above));
        entry.extend(name);
        entry.resize(entry.len().next_multiple_of(2), 0);
        entry
    };
    let mut table = entry(ITSELF, ROOT_AT, 1);
    table.extend(entry(b"openstack", OPENSTACK_AT, 1));
    for (number, name) in FOLDERS.iter().enumerate() {
        table.extend(entry(name.as_bytes(), FOLDERS_AT + number, 2));
    }
    table
}

/// One line of a folder.
fn record(name: &[u8], at: usize, size: usize, kind: u8) -> Vec<u8> {
    let length = (33 + name.len()).next_multiple_of(2);
    let mut record = vec![small_8(length), 0];
    record.extend(both_32(at));
    record.extend(both_32(size));
    record.extend([0; 7]);
    record.extend([kind, 0, 0]);
    record.extend(both_16(1));
    record.push(small_8(name.len()));
    record.extend(name);
    record.resize(length, 0);
    record
}

fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}

/// A number in both byte orders.
fn both_32(number: usize) -> Vec<u8> {
    let number = small_32(number);
    [number.to_le_bytes(), number.to_be_bytes()].concat()
}

fn both_16(number: usize) -> Vec<u8> {
    let number = u16::try_from(number).unwrap_or(u16::MAX);
    [number.to_le_bytes(), number.to_be_bytes()].concat()
}

/// The body of a request is far smaller than what doesn't fit.
fn small_32(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn small_8(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Reads an image as a system does that mounts it: all files by their paths.
    pub(crate) fn read(image: &[u8]) -> BTreeMap<String, Vec<u8>> {
        let descriptor = &image[DESCRIPTOR_AT * SECTOR..][..SECTOR];
        assert_eq!(&descriptor[..7], b"\x01CD001\x01");
        assert_eq!(&descriptor[40..48], LABEL.as_bytes());
        let sectors = u32::from_le_bytes(descriptor[80..84].try_into().unwrap());
        assert_eq!(sectors as usize * SECTOR, image.len());
        let mut files = BTreeMap::new();
        read_folder(image, &descriptor[156..190], "", &mut files);
        files
    }

    fn read_folder(image: &[u8], record: &[u8], path: &str, files: &mut BTreeMap<String, Vec<u8>>) {
        let mut records = content(image, record);
        // The first two are the folder itself and the one above.
        let mut number = 0;
        while !records.is_empty() && records[0] > 0 {
            let (record, rest) = records.split_at(usize::from(records[0]));
            let name = &record[33..33 + usize::from(record[32])];
            if number > 1 {
                let name = String::from_utf8(name.to_vec()).unwrap();
                let name = name.trim_end_matches(";1").trim_end_matches('.');
                let path = format!("{path}/{name}");
                if record[25] == FOLDER {
                    read_folder(image, record, &path, files);
                } else {
                    files.insert(path, content(image, record).to_vec());
                }
            }
            number += 1;
            records = rest;
        }
    }

    fn content<'a>(image: &'a [u8], record: &[u8]) -> &'a [u8] {
        let number = |at: usize| {
            let little = u32::from_le_bytes(record[at..at + 4].try_into().unwrap());
            let big = u32::from_be_bytes(record[at + 4..at + 8].try_into().unwrap());
            assert_eq!(little, big);
            little as usize
        };
        &image[number(2) * SECTOR..][..number(10)]
    }

    #[test]
    fn what_was_put_in_is_found_in_both_folders() {
        let long = vec![b'x'; 5000];
        let image = image(&[
            ("meta_data.json", b"{}".to_vec()),
            ("network_data.json", Vec::new()),
            ("user_data", long.clone()),
        ]);
        assert_eq!(image.len() % SECTOR, 0);
        let files = read(&image);
        assert_eq!(files.len(), 6, "{:?}", files.keys());
        for folder in FOLDERS {
            let file = |name: &str| &files[&format!("/openstack/{folder}/{name}")];
            assert_eq!(file("meta_data.json"), b"{}");
            assert!(file("network_data.json").is_empty());
            assert_eq!(*file("user_data"), long);
        }
    }
}
