package opensearch

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"weir/internal/failtest"
)

// TestSigned: every attempt is signed with the body that it carries. The server
// computes the signature itself, compares, and makes the client send each request
// again.
func TestSigned(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	keys, err := credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "").Retrieve(t.Context())
	failtest.On(t, err)
	attempts := 0
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		attempts++
		if err := verify(r, keys); err != nil {
			t.Errorf("attempt %d of %s: %v", attempts, r.URL, err)
		}
		if attempts%3 != 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, `{"items":[{"update":{"status":200}}],"hits":{"hits":[]}}`)
	}))
	defer fake.Close()
	target, err := ParseTarget(fake.URL + "?sign=eu-central-1")
	failtest.On(t, err)
	srv, err := newClient(t.Context(), target, time.Minute)
	failtest.On(t, err)
	ix := scripted(t, &script{}, time.Minute)
	ix.server = srv
	errs, err := ix.Apply(t.Context(), testDocs("a"))
	if err := errors.Join(append(errs, err)...); err != nil {
		t.Error(err)
	}
	if err := srv.refreshIndex(t.Context(), testSpace()); err != nil { // without a body
		t.Error(err)
	}
	if attempts != 6 {
		t.Errorf("%d attempts", attempts)
	}
}

// verify signs a request again, from what arrived.
func verify(r *http.Request, keys aws.Credentials) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	given := r.Header.Get("Authorization")
	again := r.Clone(r.Context())
	again.Header = http.Header{}
	_, names, _ := strings.Cut(given, "SignedHeaders=")
	names, _, _ = strings.Cut(names, ",")
	for name := range strings.SplitSeq(names, ";") {
		if v := r.Header.Values(name); len(v) > 0 {
			again.Header[http.CanonicalHeaderKey(name)] = v
		}
	}
	again.URL.Host, again.URL.Scheme = r.Host, "http"
	again.ContentLength = int64(len(body))
	again.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256(body)
	if err := v4.NewSigner().SignHTTP(r.Context(), keys, again, hex.EncodeToString(sum[:]), "es", "eu-central-1", at); err != nil {
		return err
	}
	if want := again.Header.Get("Authorization"); given != want {
		return errors.New("signed " + given + ", want " + want)
	}
	return nil
}

func TestTargets(t *testing.T) {
	for in, want := range map[string]Target{
		"http://localhost:9200":                        {URL: "http://localhost:9200"},
		"http://[::1]:9200/":                           {URL: "http://[::1]:9200"},
		"https://user:p%40ss@search.example.org/path/": {URL: "https://search.example.org/path", User: "user", Password: "p@ss"},
		"https://x-abc.eu-west-1.es.amazonaws.com":     {URL: "https://x-abc.eu-west-1.es.amazonaws.com", Region: "eu-west-1", Service: "es"},
		"https://x-abc.cn-north-1.es.amazonaws.com.cn": {URL: "https://x-abc.cn-north-1.es.amazonaws.com.cn", Region: "cn-north-1", Service: "es"},
		"https://u:p@x-abc.eu-west-1.es.amazonaws.com": {URL: "https://x-abc.eu-west-1.es.amazonaws.com", User: "u", Password: "p"},
		"https://search.example.org?sign=us-east-1":    {URL: "https://search.example.org", Region: "us-east-1", Service: "es"},
		"https://weir@x-abc.eu-west-1.es.amazonaws.com?secret=arn:aws:secretsmanager:eu-west-1:1:secret:a-1": {URL: "https://x-abc.eu-west-1.es.amazonaws.com", User: "weir", Secret: "arn:aws:secretsmanager:eu-west-1:1:secret:a-1"},
		"https://h?secret=arn:aws-cn:ssm:cn-north-1:1:parameter/weir/password":                               {URL: "https://h", Secret: "arn:aws-cn:ssm:cn-north-1:1:parameter/weir/password"},
	} {
		if got, err := ParseTarget(in); err != nil || got != want {
			t.Errorf("%s: %+v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "localhost:9200", "ftp://a", "http://", "http://a?b=c", "http://a?sign=", "http://a#b", "http://u:secret@a?sign=eu-west-1", "http://u:secret@a b", "u:secret@host",
		"http://u:secret@a?secret=arn:aws:ssm:eu-west-1:1:parameter/a", "http://a?sign=eu-west-1&secret=arn:aws:ssm:eu-west-1:1:parameter/a", "http://a?secret=", "http://a?secret=arn:aws:s3:eu-west-1:1:a",
		"https://x.eu-west-1.aoss.amazonaws.com", "https://u:secret@x.aoss.eu-west-1.on.aws", "https://x.cn-north-1.aoss.amazonaws.com.cn"} {
		if got, err := ParseTarget(in); err == nil || strings.Contains(err.Error(), "u:secret") || !errors.Is(err, ErrTarget) {
			t.Errorf("%q: %+v, %v", in, got, err)
		}
	}
}
