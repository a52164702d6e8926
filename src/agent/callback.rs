//! Which addresses the conductor lets an agent name as its own.
//!
//! The conductor will call the address a heartbeat brings, so whoever can send a heartbeat could make it call anything. The HTTP
//! side checks the URL when it comes in; the client checks it again before each call, and checks what a host name resolves to.

use std::net::{IpAddr, SocketAddr};

use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// What callback URLs may be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackRules {
    /// Networks an agent's address must lie in; loopback only if it is listed.
    pub networks: Vec<IpNet>,
    /// Plain HTTP is refused.
    pub require_tls: bool,
    /// Host names are accepted; what they resolve to must lie in `networks` too.
    pub allow_host_names: bool,
}

impl CallbackRules {
    /// True if an agent may have this address. An IPv4 address in IPv6 clothes counts as the IPv4 address it is.
    pub fn permits(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.networks
            .iter()
            .any(|network| network.contains(&address))
    }
}

/// Checks the callback URL of a heartbeat and returns it in its normal form, `scheme://host[:port]` without a slash at the end.
///
/// # Errors
/// What is wrong with it and which setting decides, in words for an operator. Never contains credentials from the URL.
pub fn check_callback_url(text: &str, rules: &CallbackRules) -> Result<String, String> {
    let url = Url::parse(text).map_err(|error| format!("is not a URL ({error})"))?;
    match url.scheme() {
        "https" => {}
        "http" if !rules.require_tls => {}
        "http" => {
            return Err(
                "is plain http, but agents must use TLS; let the ramdisk make its certificate, or set require_tls = false in [agent]"
                    .to_owned(),
            );
        }
        other => {
            return Err(format!(
                "has the scheme {other:?}; only http and https are possible"
            ));
        }
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "contains a user name or password, which an agent's address never has".to_owned(),
        );
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(
            "contains a query or a fragment; only scheme, host and port are expected".to_owned(),
        );
    }
    if url.path() != "/" {
        return Err("contains a path; only scheme, host and port are expected".to_owned());
    }
    if url.port() == Some(0) {
        return Err("has port 0".to_owned());
    }
    let address = match url.host() {
        None => return Err("has no host".to_owned()),
        Some(Host::Ipv4(address)) => IpAddr::from(address),
        Some(Host::Ipv6(address)) => IpAddr::from(address),
        Some(Host::Domain(name)) if rules.allow_host_names => {
            return Ok(normal_form(&url, name));
        }
        Some(Host::Domain(_)) => {
            return Err(
                "has a host name; use an address, or set allow_callback_host_names = true in [agent]".to_owned(),
            );
        }
    };
    if !rules.permits(address) {
        return Err(format!(
            "has the address {address}, which lies in none of the networks in callback_networks in [agent]; add its network there if agents live in it"
        ));
    }
    Ok(normal_form(&url, url.host_str().unwrap_or_default()))
}

fn normal_form(url: &Url, host: &str) -> String {
    match url.port() {
        Some(port) => format!("{}://{host}:{port}", url.scheme()),
        None => format!("{}://{host}", url.scheme()),
    }
}

/// Resolves host names, and forgets the addresses an agent must not have.
pub(super) struct GuardedResolver {
    pub(super) rules: CallbackRules,
}

impl Resolve for GuardedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let rules = self.rules.clone();
        Box::pin(async move {
            if !rules.allow_host_names {
                return Err(
                    "host names are not allowed (allow_callback_host_names in [agent])".into(),
                );
            }
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let permitted: Vec<SocketAddr> = found
                .filter(|address| rules.permits(address.ip()))
                .collect();
            if permitted.is_empty() {
                return Err(
                    "the host name has no address in the networks of callback_networks in [agent]"
                        .into(),
                );
            }
            Ok(Box::new(permitted.into_iter()) as Addrs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules() -> CallbackRules {
        CallbackRules {
            networks: vec!["10.0.0.0/8".parse().unwrap(), "fc00::/7".parse().unwrap()],
            require_tls: true,
            allow_host_names: false,
        }
    }

    #[test]
    fn good_urls_come_back_in_their_normal_form() {
        for (text, normal) in [
            ("https://10.1.2.3:9999", "https://10.1.2.3:9999"),
            ("HTTPS://10.1.2.3:9999/", "https://10.1.2.3:9999"),
            ("https://10.1.2.3:443", "https://10.1.2.3"),
            ("https://[FD00::0:1]:9999", "https://[fd00::1]:9999"),
            ("https://[::ffff:10.0.0.1]:1", "https://[::ffff:a00:1]:1"),
        ] {
            assert_eq!(check_callback_url(text, &rules()).as_deref(), Ok(normal));
        }
    }

    #[test]
    fn everything_else_is_refused_with_a_reason() {
        for (text, word) in [
            ("", "not a URL"),
            ("10.1.2.3:9999", "not a URL"),
            ("ftp://10.1.2.3", "scheme"),
            ("http://10.1.2.3:9999", "require_tls"),
            ("https://user:geheim@10.1.2.3", "user name"),
            ("https://10.1.2.3/?x=1", "query"),
            ("https://10.1.2.3/#x", "fragment"),
            ("https://10.1.2.3/v1", "path"),
            ("https://10.1.2.3:0", "port 0"),
            ("https://10.1.2.3:99999", "not a URL"),
            ("https://8.8.8.8:9999", "callback_networks"),
            ("https://127.0.0.1:9999", "callback_networks"),
            ("https://0x7f.1:9999", "127.0.0.1"),
            ("https://[::1]:9999", "callback_networks"),
            ("https://[::ffff:127.0.0.1]:9999", "callback_networks"),
            ("https://169.254.169.254", "callback_networks"),
            ("https://agent.example:9999", "allow_callback_host_names"),
        ] {
            let problem = check_callback_url(text, &rules()).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
            assert!(!problem.contains("geheim"));
        }
    }

    #[test]
    fn settings_open_what_they_say() {
        let open = CallbackRules {
            require_tls: false,
            allow_host_names: true,
            networks: vec!["127.0.0.0/8".parse().unwrap()],
        };
        assert_eq!(
            check_callback_url("http://127.0.0.1:80/", &open).as_deref(),
            Ok("http://127.0.0.1")
        );
        assert_eq!(
            check_callback_url("https://agent.example:9999", &open).as_deref(),
            Ok("https://agent.example:9999")
        );
    }
}
