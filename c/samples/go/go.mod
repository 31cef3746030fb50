module warpset/sample

go 1.19
