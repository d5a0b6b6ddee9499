"""Pictures and PDF files, decoded in a short-lived process of their own whose memory is limited."""
