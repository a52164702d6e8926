//! Reports from the field that concern single requests: slow answers, broken handshakes, odd lists, clocks and addresses.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use upbeat::agent::{AgentClient, Settings, Target};
use upbeat::command::{PostAnswer, Unreadable};

use super::server::{Play, Server, answer};
use super::tls::{BOTH, Identity, config, p256};
use super::{TOKEN, client, command, is_never_sent, running, settings, target};

/// What stands between a client and a server.
#[derive(Clone, Copy)]
enum Front {
    Plain,
    /// Breaks this many connections off once the client has said something.
    BreaksOff(usize),
    /// Passes the head of an answer on at once and its body byte by byte, with this pause before each.
    Trickles(Duration),
}

impl Front {
    /// Listens at `address` and passes connections on to `port`; answers where it listens.
    async fn of(self, address: &str, port: u16) -> std::io::Result<u16> {
        let listener = TcpListener::bind(address).await?;
        let here = listener.local_addr()?.port();
        let taken = Arc::new(AtomicUsize::new(0));
        tokio::spawn(async move {
            loop {
                let (mut near, _) = listener.accept().await.unwrap();
                let number = taken.fetch_add(1, Ordering::SeqCst);
                tokio::spawn(async move {
                    if let Front::BreaksOff(broken) = self
                        && number < broken
                    {
                        let _ = near.read(&mut [0; 64]).await;
                        near.set_zero_linger().unwrap();
                        return;
                    }
                    let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                    let Front::Trickles(pause) = self else {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                        return;
                    };
                    let (mut asked, mut told) = near.split();
                    let (mut answered, mut asking) = far.split();
                    let trickle = async {
                        let mut head = Vec::new();
                        while let Ok(byte) = answered.read_u8().await {
                            if head.ends_with(b"\r\n\r\n") {
                                tokio::time::sleep(pause).await;
                            } else {
                                head.push(byte);
                            }
                            if told.write_u8(byte).await.is_err() {
                                break;
                            }
                        }
                    };
                    let _ = tokio::join!(tokio::io::copy(&mut asked, &mut asking), trickle);
                });
            }
        });
        Ok(here)
    }
}

fn secure_target(host: &str, port: u16, identity: &Identity) -> Target {
    Target {
        callback_url: format!("https://{host}:{port}"),
        certificate: Some(identity.certificate.clone()),
        token: TOKEN.to_owned(),
    }
}

async fn secure_server(identity: &Identity) -> Server {
    Server::tls(
        config(&identity.certificate, &identity.key, BOTH),
        &[Play::Answer(answer(200, &running()))],
    )
    .await
}

/// A limit for each byte would let it go on for half a minute.
#[tokio::test]
async fn an_answer_that_trickles_in_is_bounded_as_a_whole() {
    let server = Server::plain(&[Play::Answer(answer(200, &running()))]).await;
    let front = Front::Trickles(Duration::from_millis(150));
    let port = front.of("127.0.0.1:0", server.port).await.unwrap();
    let began = Instant::now();
    let (read, posted) = tokio::join!(async { client().poll(&target(port), "a-1").await }, async {
        client().post(&target(port), false, &command()).await
    });
    assert!(
        matches!(read, Err(Unreadable::Unreachable { .. })),
        "{read:?}"
    );
    assert!(matches!(posted, PostAnswer::Unknown { .. }), "{posted:?}");
    let took = began.elapsed();
    let limit = settings().command_timeout;
    assert!(took >= limit && took < 3 * limit, "{took:?}");
}

#[tokio::test]
async fn a_handshake_that_breaks_off_means_never_sent_and_the_next_may_succeed() {
    let identity = p256();
    let server = secure_server(&identity).await;
    let port = Front::BreaksOff(4)
        .of("127.0.0.1:0", server.port)
        .await
        .unwrap();
    let target = secure_target("127.0.0.1", port, &identity);
    let client = client();
    for _ in 0..2 {
        let got = client.post(&target, false, &command()).await;
        assert!(is_never_sent(&got), "{got:?}");
        let got = client.poll(&target, "a-1").await;
        assert!(
            matches!(got, Err(Unreadable::Unreachable { .. })),
            "{got:?}"
        );
    }
    assert_eq!(server.seen.requests().len(), 0);
    let got = client.post(&target, false, &command()).await;
    assert!(matches!(got, PostAnswer::Accepted(_)), "{got:?}");
    assert!(client.poll(&target, "a-1").await.is_ok());
}

#[tokio::test]
async fn a_list_that_is_none_is_never_taken_for_an_empty_one() {
    let deep = "[".repeat(50_000);
    let bodies: [&[u8]; 10] = [
        b"",
        b"{",
        b"[]",
        b"null",
        b"{\"commands\":null}",
        b"{\"commands\":{}}",
        b"{\"commands\":[{\"command_name\":\"x\"}]}",
        b"<html>Bad Gateway</html>",
        b"{\"commands\":[\"\xff\xfe\"]}",
        deep.as_bytes(),
    ];
    for body in bodies {
        let mut list =
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len()).into_bytes();
        list.extend_from_slice(body);
        let status = Play::Answer(answer(200, r#"{"started_at": 1}"#));
        let server = Server::plain(&[status, Play::Answer(list)]).await;
        let got = client().survey(&target(server.port)).await;
        assert!(
            matches!(got, Err(Unreadable::Garbage { .. })),
            "{}: {got:?}",
            String::from_utf8_lossy(&body[..body.len().min(60)])
        );
    }
}

#[tokio::test]
async fn dates_in_a_certificate_are_of_no_account() {
    for (from, until) in [(1970, 1971), (2035, 2036), (2001, 2002)] {
        let mut parameters = rcgen::CertificateParams::new(vec!["192.0.2.77".to_owned()]).unwrap();
        parameters.not_before = rcgen::date_time_ymd(from, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(until, 1, 1);
        let key = rcgen::KeyPair::generate().unwrap();
        let identity = Identity {
            certificate: parameters.self_signed(&key).unwrap().pem(),
            key: key.serialize_pem(),
        };
        let server = secure_server(&identity).await;
        let target = secure_target("127.0.0.1", server.port, &identity);
        let got = client().post(&target, false, &command()).await;
        assert!(matches!(got, PostAnswer::Accepted(_)), "{from}: {got:?}");
    }
}

/// Two boots of one machine, at one address: what was kept of the first opens nothing at the second.
#[tokio::test]
async fn what_was_kept_of_an_earlier_boot_is_not_used_for_a_later_one() {
    let (first, second) = (p256(), p256());
    let client = client();
    let early = secure_server(&first).await;
    let late = secure_server(&second).await;
    // One address, at which the second boot answers from the second connection on.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let ports = [early.port, late.port];
    tokio::spawn(async move {
        for number in 0.. {
            let (mut near, _) = listener.accept().await.unwrap();
            let port = ports[usize::from(number > 0)];
            tokio::spawn(async move {
                let mut far = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
            });
        }
    });
    let of_first = secure_target("127.0.0.1", port, &first);
    let of_second = Target {
        token: "another-token-of-the-second-boot".to_owned(),
        ..secure_target("127.0.0.1", port, &second)
    };
    // A read, whose connection is kept open for the next one.
    client.poll(&of_first, "a-1").await.unwrap();
    client.poll(&of_second, "a-1").await.unwrap();
    let seen = late.seen.requests().join("\n");
    assert!(seen.contains("another-token-of-the-second-boot"), "{seen}");
    assert!(!seen.contains(TOKEN), "{seen}");
    let got = client.post(&of_first, false, &command()).await;
    assert!(is_never_sent(&got), "{got:?}");
    assert!(
        format!("{got:?}").contains("another certificate"),
        "{got:?}"
    );
    assert_eq!(early.seen.requests().len(), 1);
}

#[tokio::test]
async fn an_agent_at_an_ipv6_address_is_called_there() {
    let identity = p256();
    let (open, secure) = (
        Server::plain(&[Play::Answer(answer(200, &running()))]).await,
        secure_server(&identity).await,
    );
    let client = AgentClient::new(Settings {
        callback: upbeat::agent::CallbackRules {
            networks: vec!["::1/128".parse().unwrap()],
            ..settings().callback
        },
        ..settings()
    })
    .unwrap();
    let (Ok(plain), Ok(tls)) = (
        Front::Plain.of("[::1]:0", open.port).await,
        Front::Plain.of("[::1]:0", secure.port).await,
    ) else {
        println!("SKIPPED: this computer has no IPv6");
        return;
    };
    let by_http = Target {
        callback_url: format!("http://[::1]:{plain}"),
        ..target(0)
    };
    for target in [by_http, secure_target("[::1]", tls, &identity)] {
        let got = client.post(&target, false, &command()).await;
        assert!(
            matches!(got, PostAnswer::Accepted(_)),
            "{target:?}: {got:?}"
        );
        assert!(client.poll(&target, "a-1").await.is_ok());
    }
}
