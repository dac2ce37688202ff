// go-github, driven line by line: a command comes on stdin, its outcome goes to stdout as JSON.
//
// Usage: go-github URL TOKEN
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"os"

	"github.com/google/go-github/github"
)

type outcome struct {
	Result            string `json:"result,omitempty"`
	Error             string `json:"error,omitempty"`
	Message           string `json:"message,omitempty"`
	Limit             int    `json:"limit"`
	Remaining         int    `json:"remaining"`
	Reset             int64  `json:"reset"`
	RetryAfterSeconds int    `json:"retryAfterSeconds,omitempty"`
}

// withToken is what golang.org/x/oauth2 does, without that package.
type withToken string

func (token withToken) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(request)
}

func main() {
	base, err := url.Parse(os.Args[1] + "/")
	if err != nil {
		panic(err)
	}
	client := github.NewClient(&http.Client{Transport: withToken(os.Args[2])})
	client.BaseURL = base
	out := json.NewEncoder(os.Stdout)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		result, response, err := run(client, lines.Text())
		if response == nil {
			panic(err)
		}
		if err := out.Encode(describe(result, response, err)); err != nil {
			panic(err)
		}
	}
}

func run(client *github.Client, command string) (string, *github.Response, error) {
	background := context.Background()
	switch command {
	case "user":
		user, response, err := client.Users.Get(background, "")
		return user.GetLogin(), response, err
	case "search":
		_, response, err := client.Search.Repositories(background, "engine", nil)
		return "found", response, err
	case "issue":
		title := "found by go-github"
		issue, response, err := client.Issues.Create(background, "ada", "engine", &github.IssueRequest{Title: &title})
		return issue.GetTitle(), response, err
	default:
		panic(command)
	}
}

func describe(result string, response *github.Response, err error) outcome {
	rate := response.Rate
	if err == nil {
		return outcome{Result: result, Limit: rate.Limit, Remaining: rate.Remaining, Reset: rate.Reset.Unix()}
	}
	told := outcome{Error: "another", Message: err.Error(), Limit: rate.Limit, Remaining: rate.Remaining, Reset: rate.Reset.Unix()}
	var primary *github.RateLimitError
	var secondary *github.AbuseRateLimitError
	var plain *github.ErrorResponse
	switch {
	case errors.As(err, &primary):
		told.Error, told.Message, told.Reset = "RateLimitError", primary.Message, primary.Rate.Reset.Unix()
	case errors.As(err, &secondary):
		told.Error, told.Message = "AbuseRateLimitError", secondary.Message
		if secondary.RetryAfter != nil {
			told.RetryAfterSeconds = int(secondary.RetryAfter.Seconds())
		}
	case errors.As(err, &plain):
		told.Error, told.Message = "ErrorResponse", plain.Message
	}
	return told
}
