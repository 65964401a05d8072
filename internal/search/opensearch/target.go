package opensearch

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

// ErrTarget is wrapped by the error for every URL that is refused.
var ErrTarget = errors.New("not the URL of an OpenSearch cluster")

// Target is a cluster and the credentials for it.
type Target struct {
	URL      string // scheme, host and port, and the path in front of the API's
	User     string
	Password string
	// Secret is the ARN of a secret or parameter with the password, "" for none.
	Secret string
	// Region and Service are for AWS Signature Version 4, with the credentials that the
	// SDK finds. With an empty Region requests are not signed.
	Region, Service string
}

// ParseTarget reads the URL of a cluster. A name and password in it are used for basic
// authentication; with ?secret=ARN the password is read from AWS Secrets Manager or the
// Parameter Store. Other requests to a domain of Amazon OpenSearch Service are signed. For a
// domain with a custom name, add ?sign=REGION to the URL. The path must not contain @:
// the text before it would be a password with a / that is not written as %2F.
func ParseTarget(s string) (Target, error) {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.Fragment != "" || strings.Contains(u.Path, "@") {
		return Target{}, fmt.Errorf("%s is %w; it looks like http://localhost:9200 or https://user:password@host, with %%2F for a / in the password", hidden(s), ErrTarget)
	}
	t := Target{User: u.User.Username()}
	t.Password, _ = u.User.Password()
	for name, values := range u.Query() {
		switch {
		case len(values) == 1 && name == "sign" && values[0] != "":
			t.Region, t.Service = values[0], "es"
		case len(values) == 1 && name == "secret" && isSecret(values[0]):
			t.Secret = values[0]
		default:
			return Target{}, fmt.Errorf("%s is %w: behind the question mark there is nothing but sign=REGION, or secret= and the ARN of a secret of Secrets Manager or of a parameter of the Parameter Store", hidden(s), ErrTarget)
		}
	}
	if strings.Contains(u.Hostname(), ".aoss.") {
		return Target{}, fmt.Errorf("%s is %w: OpenSearch Serverless has no refresh, no delete by query and no version, which weir needs; use a domain of Amazon OpenSearch Service", hidden(s), ErrTarget)
	}
	if region, ok := domain(u.Hostname()); ok && t.Region == "" && t.User == "" && t.Secret == "" {
		t.Region, t.Service = region, "es"
	}
	if t.Region != "" && (t.User != "" || t.Secret != "") || t.Password != "" && t.Secret != "" {
		return Target{}, fmt.Errorf("%s is %w: a request carries a password or a signature, not both, and the password is in the URL or in the secret", hidden(s), ErrTarget)
	}
	u.User, u.RawQuery = nil, ""
	t.URL = strings.TrimSuffix(u.String(), "/")
	return t, nil
}

// domain is the region of a domain of Amazon OpenSearch Service: NAME.REGION.es.…
func domain(host string) (region string, ok bool) {
	for _, suffix := range []string{".es.amazonaws.com", ".es.amazonaws.com.cn"} {
		if front, found := strings.CutSuffix(host, suffix); found {
			if _, region, found = strings.Cut(front, "."); found && region != "" {
				return region, true
			}
		}
	}
	return "", false
}

// Shown is the target in a form that may be printed.
func (t Target) Shown() string { return t.URL }

// hidden is a URL without anything that may be a password.
func hidden(s string) string {
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		scheme := "?"
		for _, known := range []string{"http", "https"} {
			if strings.HasPrefix(s, known+"://") {
				scheme = known
			}
		}
		if strings.Contains(s[:at], "?") {
			return fmt.Sprintf("%q", scheme+"://…")
		}
		s = scheme + "://…" + s[at:]
	}
	if before, _, ok := strings.Cut(s, "?"); ok { // by mistake, the password itself may be there
		s = before + "?…"
	}
	return fmt.Sprintf("%q", s)
}
