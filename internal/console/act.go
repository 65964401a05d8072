package console

import (
	"crypto/subtle"
	"net/http"
)

// maxForm is the most bytes of a form: a row has at most 400 KB, and each byte of it may be escaped.
const maxForm = 1 << 20

// act has h do an action, one at a time, if the console may act and the request comes from one of
// its own pages. Both of two things must show that, since each alone has failed in the field:
// the browser's word on the origin, and a token that only such a page has.
// A body of more than maxForm bytes, or one that is no form, is 400; a console that only reads,
// another origin and a wrong token are 403. None of them runs h. An action waits for the one before
// it as long as its request lasts, and each that runs is logged with its path.
func (c *Console) act(h func(*request) error) func(*request) error {
	return func(r *request) error {
		if !c.options.Write {
			return errReadsOnly
		}
		if !isOwn(r.Request) {
			return &mistake{http.StatusForbidden, "The browser does not say that this comes from a page of the console."}
		}
		r.Body = http.MaxBytesReader(r.w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return &mistake{http.StatusBadRequest, "The form cannot be read."}
		}
		if subtle.ConstantTimeCompare([]byte(r.PostForm.Get("token")), []byte(c.token)) != 1 {
			return &mistake{http.StatusForbidden, "The form is not of this run of the program. Load its page again."}
		}
		return c.alone(r, r.PostForm.Get("action"), func() error { return h(r) })
	}
}

// alone does an action that is allowed, once no other one is being done, and logs it.
func (c *Console) alone(r *request, action string, do func() error) error {
	select {
	case c.one <- struct{}{}:
		defer func() { <-c.one }()
	case <-r.ctx.Done():
		return r.ctx.Err()
	}
	c.options.Log.Info("an action in the console", "model", r.part.Model.Name, "path", r.URL.Path, "action", action)
	return do()
}

// isOwn reports whether a browser says that a request comes from a page of the same origin. A
// client that says nothing of it is no browser of today, and is refused as well.
// Browsers send Sec-Fetch-Site with each request to https and to loopback, and Origin with each
// POST (Fetch Metadata, and the Fetch Standard).
func isOwn(r *http.Request) bool {
	if r.Header.Get("Sec-Fetch-Site") == "" && r.Header.Get("Origin") == "" {
		return false
	}
	return http.NewCrossOriginProtection().Check(r) == nil
}

// redirectTo sends the browser to a page after an action, so that loading it again repeats nothing.
func (r *request) redirectTo(path string) error {
	http.Redirect(r.w, r.Request, path, http.StatusSeeOther)
	return nil
}
